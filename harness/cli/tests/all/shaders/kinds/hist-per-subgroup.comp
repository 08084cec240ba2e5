// --grid 2 --subgroup-size 4 --buffer 0.0=random:1024
// Clean: a histogram a subgroup, then their sum.
#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 16) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) buffer H { uint hist[16]; };
shared uint own[4][16];
void main() {
    uint t = gl_LocalInvocationIndex;
    for (uint s = 0; s < gl_NumSubgroups; s++) own[s][t] = 0;
    barrier();
    atomicAdd(own[gl_SubgroupID][x[gl_GlobalInvocationID.x] & 15u], 1u);
    barrier();
    uint sum = 0;
    for (uint s = 0; s < gl_NumSubgroups; s++) sum += own[s][t];
    if (sum > 0) atomicAdd(hist[t], sum);
}
//~ main: clean
