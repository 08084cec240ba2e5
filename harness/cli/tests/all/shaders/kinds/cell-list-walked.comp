// --grid 1 --buffer 0.0=random:256
// Racy: the links of other workgroups' nodes; of one workgroup, buffers need more than barrier().
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) readonly buffer P { uint cell_of[]; };
layout(binding = 1) buffer Heads { uint head[8]; };
layout(binding = 2) buffer Next { uint next[]; };
layout(binding = 3) writeonly buffer O { uint o[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    next[i] = atomicExchange(head[cell_of[i] & 7u], i + 1u); //~ race with 14; fix: declare `Next` coherent
    barrier(); //~ fix: put `memoryBarrierBuffer();` before and after this barrier
    uint n = 0;
    for (uint at = atomicOr(head[i & 7u], 0u); at != 0u; at = next[at - 1u]) n++;
    o[i] = n;
}
//~ main: racy; mended: clean in the orders tried
