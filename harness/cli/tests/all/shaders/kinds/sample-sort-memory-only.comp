// --inputs auto
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer I { uint key[]; };
layout(std430, binding = 1) readonly buffer S { uint split[7]; };
layout(std430, binding = 2) buffer C { uint count[]; };
shared uint c[8];
void main() {
    uint i = gl_LocalInvocationIndex;
    if (i < 8u) c[i] = 0u; //~ race with 14; fix: put `barrier();` after the statement that this line controls
    memoryBarrierShared();
    uint k = key[gl_GlobalInvocationID.x], b = 0u;
    for (uint s = 0u; s < 7u; ++s) b += uint(k >= split[s]);
    atomicAdd(c[b], 1u);
    barrier();
    if (i < 8u) count[i * gl_NumWorkGroups.x + gl_WorkGroupID.x] = c[i];
}
//~ main: racy; mended: clean in the orders tried
