// --grid 4
// Racy: the slot is given back without a barrier.
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) coherent buffer Q { uint head; uint tail; uint seq[2]; uint data[2]; };
layout(binding = 1) writeonly buffer O { uint o[]; };
void main() {
    uint g = gl_WorkGroupID.x;
    if (g < 2u) {
        uint pos = atomicAdd(tail, 1u);
        data[pos & 1u] = g; //~ race with 16
        atomicExchange(seq[pos & 1u], pos + 1u); //~ fix: put `memoryBarrierBuffer();` before this atomic
    } else {
        uint pos = atomicAdd(head, 1u);
        for (int i = 0; i < 8; i++)
            if (atomicOr(seq[pos & 1u], 0u) == pos + 1u) { memoryBarrierBuffer(); o[g] = data[pos & 1u]; break; }
    }
}
//~ main: racy; mended: clean in the orders tried
