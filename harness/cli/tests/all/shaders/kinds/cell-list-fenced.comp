// --grid 1 --buffer 0.0=random:256
// Clean: coherent, and buffers are ordered around the barrier.
#version 450
layout(local_size_x = 3) in;
layout(binding = 0) readonly buffer P { uint cell_of[]; };
layout(binding = 1) coherent buffer Heads { uint head[8]; };
layout(binding = 2) coherent buffer Next { uint next[]; };
layout(binding = 3) writeonly buffer O { uint o[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    next[i] = atomicExchange(head[cell_of[i] & 7u], i + 1u);
    memoryBarrierBuffer();
    barrier();
    memoryBarrierBuffer();
    uint n = 0;
    for (uint at = head[i & 7u]; at != 0u; at = next[at - 1u]) n++;
    o[i] = n;
}
//~ main: clean
