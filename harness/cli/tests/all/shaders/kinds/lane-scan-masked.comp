// --grid 4 --subgroup-size 32
// The same with a mask.
#version 460
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle_relative : require
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Out { uint data[]; };

void main() {
    uint me = gl_GlobalInvocationID.x;
    uint lane = gl_SubgroupInvocationID;
    uint sum = 1u;
    for (uint distance = 1u; distance < 32u; distance <<= 1) {
        sum += subgroupShuffleUp(sum, distance) & (lane >= distance ? ~0u : 0u);
    }
    data[(me / 32u) * 32u + sum - 1u] = me;
}
//~ main: clean
