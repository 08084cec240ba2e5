// --grid 3
// Racy: the tail says what was reserved, not what was written.
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent buffer Queue { uint head; uint tail; uint done; uint full[32]; uint item[32]; };
layout(std430, binding = 1) writeonly buffer Out { uint seen[32]; };
void push(uint v) {
    uint slot = atomicAdd(tail, 1u);
    item[slot] = v; //~ race with 19; fix: make this access atomic (it remains unordered)
    memoryBarrierBuffer();
}
void main() {
    if (gl_WorkGroupID.x == 0u) push(1u);
    for (;;) {
        uint slot = atomicAdd(head, 1u);
        if (slot >= 7u) break;
        while (atomicOr(tail, 0u) <= slot) {}
        memoryBarrierBuffer();
        uint v = item[slot]; //~ fix: make this access atomic (it remains unordered)
        seen[v & 31u] = slot;
        if (v < 4u) { push(2u * v); push(2u * v + 1u); }
    }
}
//~ main: racy; mended: needs-inputs
