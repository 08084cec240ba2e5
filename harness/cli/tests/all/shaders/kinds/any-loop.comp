// --grid 2 --subgroup-size 8 --buffer 0.0=iota:256
// Clean: subgroup goes on while any lane wants to, atomics only for those.
#version 450
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_KHR_shader_subgroup_shuffle : require
layout(local_size_x = 16) in;
layout(std430, binding = 0) readonly buffer In { uint data[]; };
layout(std430, binding = 1) buffer Out { uint bins[8]; };
void main() {
    uint left = data[gl_GlobalInvocationID.x] % 5u;
    while (subgroupAny(left != 0u)) {
        uint seen = subgroupShuffleXor(left, 1u);
        if (left != 0u) { atomicAdd(bins[left & 7u], seen); left--; }
    }
}
//~ main: clean
