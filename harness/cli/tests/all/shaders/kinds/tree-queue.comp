// --grid 3
// Clean: items make items; each slot has a flag, with fences on both sides.
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent buffer Queue { uint head; uint tail; uint done; uint full[32]; uint item[32]; };
layout(std430, binding = 1) writeonly buffer Out { uint seen[32]; };
void push(uint v) {
    uint slot = atomicAdd(tail, 1u);
    item[slot] = v;
    memoryBarrierBuffer();
    atomicExchange(full[slot], 1u);
}
void main() {
    if (gl_WorkGroupID.x == 0u) push(1u);
    for (;;) {
        uint slot = atomicAdd(head, 1u);
        if (slot >= 7u) break;
        while (atomicOr(full[slot], 0u) == 0u) {}
        memoryBarrierBuffer();
        uint v = item[slot];
        seen[v] = slot;
        if (v < 4u) { push(2u * v); push(2u * v + 1u); }
    }
}
//~ main: clean in the orders tried
