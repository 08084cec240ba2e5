// --grid 1 --subgroup-size 8 --buffer 0.0=random:256
// Clean: segmented sum by shuffles.
#version 450
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle_relative : require
layout(local_size_x = 16) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) buffer S { uint sums[]; };
void main() {
    uint i = gl_GlobalInvocationID.x, lane = gl_SubgroupInvocationID;
    uint v = x[i] & 15u, head = (x[i] >> 4) & 1u;
    for (uint d = 1u; d < gl_SubgroupSize; d <<= 1) {
        uint o = subgroupShuffleUp(v, d), h = subgroupShuffleUp(head, d);
        if (lane >= d) {
            if (head == 0u) v += o;
            head |= h;
        }
    }
    if (lane == gl_SubgroupSize - 1u) sums[gl_SubgroupID] = v;
}
//~ main: clean
