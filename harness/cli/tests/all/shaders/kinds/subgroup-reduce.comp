// --grid 2 --subgroup-size 8 --buffer 0.0=random:1024
#version 450
#extension GL_KHR_shader_subgroup_arithmetic : enable
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer In { uint data[]; };
layout(binding = 1) writeonly buffer Out { uint sums[]; };
shared uint part[64];
void main() {
    uint sum = subgroupAdd(data[gl_GlobalInvocationID.x]);
    if (subgroupElect()) part[gl_SubgroupID] = sum;
    barrier();
    if (gl_SubgroupID == 0) {
        uint mine = gl_SubgroupInvocationID < gl_NumSubgroups ? part[gl_SubgroupInvocationID] : 0u;
        mine = subgroupAdd(mine);
        if (subgroupElect()) sums[gl_WorkGroupID.x] = mine;
    }
}
//~ main: clean
