// --grid 1 --subgroup-size 4
// Clean: lanes leave a loop with a barrier one after the other; those in it exchange.
#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 4) in;
layout(binding = 0) writeonly buffer O { uint o[]; };
shared uint s[4];
void main() {
    uint t = gl_SubgroupInvocationID;
    uint sum = 0;
    for (uint i = 0; i <= t; i++) {
        s[t] = i;
        subgroupBarrier();
        sum += s[3];
        subgroupBarrier();
    }
    o[t] = sum;
}
//~ main: clean
