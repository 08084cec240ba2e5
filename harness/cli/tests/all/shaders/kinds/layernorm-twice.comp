// --grid 2 --subgroup-size 4 --buffer 0.0=floats:1024
// Racy: the second sum overwrites the first where others still read it.
#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 16) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
shared float part[4];
float sum(float v) {
    float s = subgroupAdd(v);
    if (subgroupElect()) part[gl_SubgroupID] = s;
    barrier();
    float all = 0;
    for (uint i = 0; i < gl_NumSubgroups; i++) all += part[i]; //~ race with 11; fix: put `barrier();` after the loop in this line
    return all;
}
void main() {
    float v = x[gl_GlobalInvocationID.x];
    float mean = sum(v) / 16.0;
    float var = sum((v - mean) * (v - mean)) / 16.0;
    y[gl_GlobalInvocationID.x] = (v - mean) * inversesqrt(var + 1e-5);
}
//~ main: racy; mended: clean
