// --grid 1 --subgroup-size 8 --buffer 0.0=random:64
// Clean: sorting within a subgroup by shuffles.
#version 450
#extension GL_KHR_shader_subgroup_shuffle : require
layout(local_size_x = 8) in;
layout(binding = 0) buffer K { uint k[]; };
void main() {
    uint lane = gl_SubgroupInvocationID, v = k[lane];
    for (uint size = 2u; size <= 8u; size <<= 1)
        for (uint d = size >> 1; d > 0u; d >>= 1) {
            uint o = subgroupShuffleXor(v, d);
            bool up = (lane & size) == 0u, low = (lane & d) == 0u;
            v = (v < o) == (up == low) ? v : o;
        }
    k[lane] = v;
}
//~ main: clean
