// --grid 1 --subgroup-size 4
// Racy: what another subgroup wrote.
#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 8) in;
layout(binding = 0) writeonly buffer O { uint o[]; };
shared uint s[8];
void main() {
    uint t = gl_LocalInvocationID.x;
    s[t] = t; //~ race with 12; fix: put `barrier();` after this line
    subgroupBarrier();
    o[t] = s[t ^ 4];
}
//~ main: racy; mended: clean
