#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
// What it leaves depends on how many invocations make a subgroup.
layout(local_size_x = 16) in;
layout(set = 0, binding = 0) buffer Sums { uint sums[16]; };
void main() { sums[gl_LocalInvocationIndex] = subgroupAdd(1u); }
