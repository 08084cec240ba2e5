// --grid 1 --subgroup-size 8
// Clean: the last subgroup is not full.
#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 12) in;
layout(binding = 0) readonly buffer K { uint k[]; };
layout(binding = 1) writeonly buffer O { uint o[]; };
shared uint s[2];
void main() {
    uint v = subgroupExclusiveAdd(k[gl_LocalInvocationIndex]);
    if (gl_SubgroupInvocationID == subgroupMax(gl_SubgroupInvocationID)) s[gl_SubgroupID] = v;
    barrier();
    o[gl_LocalInvocationIndex] = v + (gl_SubgroupID > 0 ? s[0] : 0);
}
//~ main: clean
