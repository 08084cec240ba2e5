// --grid 4 --subgroup-size 32
// A scan without branches: what lanes below the first would give is undefined, and times 0 it is 0.
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
        sum += subgroupShuffleUp(sum, distance) * uint(lane >= distance);
    }
    data[(me / 32u) * 32u + sum - 1u] = me;
}
//~ main: clean
