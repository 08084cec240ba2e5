// --grid 1 --subgroup-size 8
// Clean: some lanes have returned; the barrier is of those that are left.
#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 8) in;
layout(binding = 0) writeonly buffer O { uint o[]; };
shared uint s[8];
void main() {
    uint t = gl_SubgroupInvocationID;
    if (t >= 6) return;
    s[t] = t;
    subgroupBarrier();
    o[t] = s[5 - t];
}
//~ main: clean
