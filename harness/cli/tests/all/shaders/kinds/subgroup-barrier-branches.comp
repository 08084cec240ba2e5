// --grid 1 --subgroup-size 8
// Racy: two barriers in two branches are two; lanes of one branch read what those of the other wrote.
#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 8) in;
layout(binding = 0) writeonly buffer O { uint o[]; };
shared uint s[8];
void main() {
    uint t = gl_SubgroupInvocationID;
    s[t] = t; //~ race with 11; fix: put `barrier();` after this line
    if (t < 4) { subgroupBarrier(); o[t] = s[7 - t]; }
    else { subgroupBarrier(); o[t] = s[t]; }
}
//~ main: racy; mended: clean
