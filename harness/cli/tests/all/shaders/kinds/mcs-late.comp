// --grid 3
// Racy: no fence between the change and handing over.
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent buffer Lock { uint tail; uint next[8]; uint locked[8]; };
layout(std430, binding = 1) coherent buffer Data { uint count; };
void main() {
    uint me = gl_WorkGroupID.x + 1u;
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
    count = count + 1u; //~ race
    if (atomicOr(next[me], 0u) == 0u) { //~ fix: put `memoryBarrierBuffer();` before this atomic
        if (atomicCompSwap(tail, me, 0u) == me) return;
        while (atomicOr(next[me], 0u) == 0u) {}
    }
    atomicExchange(locked[atomicOr(next[me], 0u)], 0u);
}
//~ main: racy; mended: clean in the orders tried
