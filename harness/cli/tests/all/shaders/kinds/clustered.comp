// --grid 2 --subgroup-size 16 --buffer 0.0=iota:256
// Clean: one lane of each four writes their sum.
#version 450
#extension GL_KHR_shader_subgroup_clustered : require
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer In { uint data[]; };
layout(std430, binding = 1) writeonly buffer Out { uint sums[]; };
void main() {
    uint s = subgroupClusteredAdd(data[gl_GlobalInvocationID.x], 4u);
    if ((gl_SubgroupInvocationID & 3u) == 0u) sums[gl_GlobalInvocationID.x >> 2u] = s;
}
//~ main: clean
