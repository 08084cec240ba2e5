// --grid 3
// Racy: who finds it done does not acquire.
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent buffer Once { uint state; uint table[4]; };
layout(std430, binding = 1) writeonly buffer Out { uint result[]; };
void main() {
    uint s = atomicCompSwap(state, 0u, 1u); //~ fix: put `memoryBarrierBuffer();` after this atomic
    if (s == 0u) {
        for (uint i = 0u; i < 4u; i++) table[i] = i * i; //~ race with 16
        memoryBarrierBuffer();
        atomicExchange(state, 2u);
    } else {
        while (s != 2u) s = atomicOr(state, 0u); //~ fix: put `memoryBarrierBuffer();` after this atomic
    }
    result[gl_WorkGroupID.x] = table[gl_WorkGroupID.x];
}
//~ main: racy; mended: clean in the orders tried
