#version 450
// A sum and a ballot of each subgroup.
#extension GL_KHR_shader_subgroup_arithmetic : enable
#extension GL_KHR_shader_subgroup_ballot : enable
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer B0 { uint data[]; };

void main() {
    uint i = gl_LocalInvocationIndex;
    uint sum = subgroupAdd(data[i]);
    uint smaller = subgroupBallotBitCount(subgroupBallot(data[i] < 5u));
    data[i] = sum * 10u + smaller;
}
