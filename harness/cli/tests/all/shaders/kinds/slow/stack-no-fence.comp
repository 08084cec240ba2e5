// --grid 3
// Racy: the reader follows the pointer without acquiring.
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent buffer Stack { uint head; uint pushed; uint next[16]; uint value[16]; };
layout(std430, binding = 1) writeonly buffer Out { uint sum; };
void main() {
    uint node = gl_WorkGroupID.x + 1u;
    value[node] = node * 10u; //~ race with 20
    uint old = atomicOr(head, 0u), seen;
    for (;;) {
        next[node] = old;
        memoryBarrierBuffer();
        seen = atomicCompSwap(head, old, node);
        if (seen == old) break;
        old = seen;
    }
    if (atomicAdd(pushed, 1u) == gl_NumWorkGroups.x - 1u) { //~ fix: put `memoryBarrierBuffer();` after this atomic
        uint at = atomicExchange(head, 0u), total = 0u;
        while (at != 0u) { total += value[at]; at = next[at]; }
        sum = total;
    }
}
//~ main: racy; mended: clean in the orders tried
