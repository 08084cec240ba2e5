// --grid 3
// Clean: each waits for a flag of its own.
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent buffer Lock { uint tail; uint next[8]; uint locked[8]; };
layout(std430, binding = 1) coherent buffer Data { uint count; };
void main() {
    uint me = gl_WorkGroupID.x + 1u;
    for (uint turn = 0u; turn < 2u; turn++) {
        atomicExchange(next[me], 0u);
        atomicExchange(locked[me], 1u);
        memoryBarrierBuffer();
        uint before = atomicExchange(tail, me);
        if (before != 0u) {
            memoryBarrierBuffer();
            atomicExchange(next[before], me);
            while (atomicOr(locked[me], 0u) == 1u) {}
        }
        memoryBarrierBuffer();
        count = count + 1u;
        memoryBarrierBuffer();
        if (atomicOr(next[me], 0u) == 0u) {
            if (atomicCompSwap(tail, me, 0u) == me) continue;
            while (atomicOr(next[me], 0u) == 0u) {}
        }
        memoryBarrierBuffer();
        atomicExchange(locked[atomicOr(next[me], 0u)], 0u);
    }
}
//~ main: clean in the orders tried
