// --grid 3
// Clean: sense-reversing barrier of all workgroups, twice.
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
        memoryBarrierBuffer();
    }
    barrier();
    memoryBarrierBuffer();
}
void main() {
    uint n = gl_NumWorkGroups.x * 4u, i = gl_GlobalInvocationID.x;
    data[i] = i;
    all();
    uint v = data[n - 1u - i];
    all();
    data[i] = v;
}
//~ main: clean in the orders tried
