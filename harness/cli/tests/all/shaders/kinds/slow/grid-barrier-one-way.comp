// --grid 3
// Racy: nobody acquires behind the wait for the round.
#version 450
layout(local_size_x = 4) in;
layout(std430, binding = 0) coherent buffer Sync { uint arrived; uint round; };
layout(std430, binding = 1) coherent buffer Data { uint data[64]; };
void all() {
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationIndex == 0u) {
        memoryBarrierBuffer();
        uint r = atomicOr(round, 0u);
        if (atomicAdd(arrived, 1u) == gl_NumWorkGroups.x - 1u) {
            atomicExchange(arrived, 0u);
            memoryBarrierBuffer();
            atomicAdd(round, 1u);
        } else {
            while (atomicOr(round, 0u) == r) {}
        }
    }
    barrier(); //~ fix: put `memoryBarrierBuffer();` before and after this barrier
}
void main() {
    uint n = gl_NumWorkGroups.x * 4u, i = gl_GlobalInvocationID.x;
    data[i] = i; //~ race with 27
    all();
    uint v = data[n - 1u - i];
    all();
    data[i] = v;
}
//~ main: racy; mended: clean in the orders tried
