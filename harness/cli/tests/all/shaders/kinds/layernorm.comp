// --grid 2 --subgroup-size 4 --buffer 0.0=floats:1024
// Clean: sums by subgroups, then of subgroups.
#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 16) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
shared vec2 part[4];
void main() {
    float v = x[gl_GlobalInvocationID.x];
    vec2 s = subgroupAdd(vec2(v, v * v));
    if (subgroupElect()) part[gl_SubgroupID] = s;
    barrier();
    vec2 all = vec2(0);
    for (uint i = 0; i < gl_NumSubgroups; i++) all += part[i];
    float mean = all.x / 16.0, var = all.y / 16.0 - mean * mean;
    y[gl_GlobalInvocationID.x] = (v - mean) * inversesqrt(var + 1e-5);
}
//~ main: clean
