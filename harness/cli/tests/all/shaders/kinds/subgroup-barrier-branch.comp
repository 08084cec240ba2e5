// --grid 1 --subgroup-size 8
// Clean: lanes of one branch exchange by the subgroup's barrier; nobody waits for the others.
#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 8) in;
layout(binding = 0) writeonly buffer O { uint o[]; };
shared uint s[8];
void main() {
    uint t = gl_SubgroupInvocationID;
    uint v = 0;
    if (t < 4) {
        s[t] = t;
        subgroupBarrier();
        v = s[3 - t];
    }
    o[t] = v;
}
//~ main: clean
