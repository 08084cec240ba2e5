// --grid 2
// Clean: a barrier of the grid that turns its sense.
#version 450
layout(local_size_x = 2) in;
layout(binding = 0) coherent buffer B { uint arrived; uint sense; };
layout(binding = 1) coherent buffer D { uint d[]; };
void grid_sync(uint round) {
    memoryBarrierBuffer();
    barrier();
    if (gl_LocalInvocationIndex == 0) {
        memoryBarrierBuffer();
        if (atomicAdd(arrived, 1u) == gl_NumWorkGroups.x - 1u) {
            memoryBarrierBuffer();
            atomicExchange(arrived, 0u);
            memoryBarrierBuffer();
            atomicAdd(sense, 1u);
        } else {
            while (atomicAdd(sense, 0u) == round) {}
        }
        memoryBarrierBuffer();
    }
    barrier();
    memoryBarrierBuffer();
}
void main() {
    uint i = gl_GlobalInvocationID.x, n = 4u;
    d[i] = i;
    grid_sync(0u);
    uint v = d[n - 1u - i];
    grid_sync(1u);
    d[i] = v + 1u;
    grid_sync(2u);
    uint w = d[i ^ 1u];
    grid_sync(3u);
    d[i] = w;
}
//~ main: clean in the orders tried
