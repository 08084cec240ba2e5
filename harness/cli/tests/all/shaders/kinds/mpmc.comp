// --grid 4 --inputs zeros
// Clean: Vyukov's queue of bounded size, one lane a workgroup.
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) coherent buffer Q { uint head; uint tail; uint seq[4]; uint data[4]; };
layout(binding = 1) writeonly buffer O { uint o[]; };
bool push(uint v) {
    uint pos = atomicOr(tail, 0u);
    for (int tries = 0; tries < 64; tries++) {
        uint turn = atomicOr(seq[pos & 3u], 0u);
        memoryBarrierBuffer();
        int d = int(turn - (pos & ~3u) / 4u * 2u);
        if (d == 0) {
            uint old = atomicCompSwap(tail, pos, pos + 1u);
            if (old == pos) {
                data[pos & 3u] = v;
                memoryBarrierBuffer();
                atomicExchange(seq[pos & 3u], turn + 1u);
                return true;
            }
            pos = old;
        } else if (d < 0) return false;
        else pos = atomicOr(tail, 0u);
    }
    return false;
}
bool pop(out uint v) {
    v = 0u;
    uint pos = atomicOr(head, 0u);
    for (int tries = 0; tries < 64; tries++) {
        uint turn = atomicOr(seq[pos & 3u], 0u);
        memoryBarrierBuffer();
        int d = int(turn - ((pos & ~3u) / 4u * 2u + 1u));
        if (d == 0) {
            uint old = atomicCompSwap(head, pos, pos + 1u);
            if (old == pos) {
                v = data[pos & 3u];
                memoryBarrierBuffer();
                atomicExchange(seq[pos & 3u], turn + 1u);
                return true;
            }
            pos = old;
        } else if (d < 0) return false;
        else pos = atomicOr(head, 0u);
    }
    return false;
}
void main() {
    uint g = gl_WorkGroupID.x, v;
    push(g + 1u);
    push(g + 5u);
    if (pop(v)) o[g * 2u] = v;
    if (pop(v)) o[g * 2u + 1u] = v;
}
//~ main: clean in the orders tried
