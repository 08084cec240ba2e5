// --grid 1 --subgroup-size 8 --buffer 0.0=random:64
// Clean: a reduction in a branch, of its lanes.
#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer K { uint k[]; };
layout(binding = 1) buffer O { uint sum; };
void main() {
    uint v = k[gl_SubgroupInvocationID];
    if ((v & 1u) == 0u) {
        uint s = subgroupAdd(v);
        if (subgroupElect()) atomicAdd(sum, s);
    }
}
//~ main: clean in the orders tried
