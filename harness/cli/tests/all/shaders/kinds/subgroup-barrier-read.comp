// --grid 1 --subgroup-size 4 --buffer 0.0=iota
// Clean: the condition is read from a buffer that nobody writes.
#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 4) in;
layout(binding = 0) readonly buffer I { uint x[]; };
layout(binding = 1) writeonly buffer O { uint o[]; };
shared uint s[4];
void main() {
    uint t = gl_SubgroupInvocationID;
    if ((x[t] & 1u) == 0u) {
        s[t] = t;
        subgroupBarrier();
        o[t] = s[t ^ 2];
    }
}
//~ main: clean
