// --grid 4 --subgroup-size 16
#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_shader_subgroup_clustered : require
#extension GL_KHR_shader_subgroup_quad : require
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer In { uint values[]; };
layout(binding = 1) buffer Out { uint total; uint counts[]; };
shared uint parts[64];
void main() {
    uint value = values[gl_GlobalInvocationID.x];
    uint sum = subgroupInclusiveAdd(value);
    if (gl_SubgroupInvocationID == gl_SubgroupSize - 1) parts[gl_SubgroupID] = sum;
    barrier();
    if (gl_SubgroupID == 0) {
        uint part = gl_SubgroupInvocationID < gl_NumSubgroups ? parts[gl_SubgroupInvocationID] : 0;
        part = subgroupExclusiveAdd(part);
        if (gl_SubgroupInvocationID < gl_NumSubgroups) parts[gl_SubgroupInvocationID] = part;
    }
    barrier();
    uvec4 vote = subgroupBallot(value > 3);
    if (subgroupElect()) atomicAdd(total, subgroupBallotBitCount(vote));
    uint other = subgroupShuffleXor(value, 1) + subgroupClusteredMax(value, 4) + subgroupQuadBroadcast(value, 0);
    counts[gl_GlobalInvocationID.x] = subgroupAny(other > 1) ? sum + parts[gl_SubgroupID] : other;
}
//~ main: clean
