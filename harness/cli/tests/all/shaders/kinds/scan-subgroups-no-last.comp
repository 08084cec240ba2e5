// --grid 2 --subgroup-size 8 --buffer 0.0=iota:512
// Racy: others read what subgroup 0 writes.
#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
shared uint sums[64];
void main() {
    uint v = data[gl_GlobalInvocationID.x];
    uint inc = subgroupInclusiveAdd(v);
    if (gl_SubgroupInvocationID == gl_SubgroupSize - 1u) sums[gl_SubgroupID] = inc;
    barrier();
    if (gl_SubgroupID == 0u) {
        uint s = gl_SubgroupInvocationID < gl_NumSubgroups ? sums[gl_SubgroupInvocationID] : 0u;
        uint e = subgroupExclusiveAdd(s);
        if (gl_SubgroupInvocationID < gl_NumSubgroups) sums[gl_SubgroupInvocationID] = e;
    }
    data[gl_GlobalInvocationID.x] = inc + sums[gl_SubgroupID]; //~ race with 16; fix: put `barrier();` before this line
}
//~ main: racy; mended: clean
