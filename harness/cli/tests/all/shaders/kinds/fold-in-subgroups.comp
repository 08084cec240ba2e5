// --subgroup-size 32
#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer I { uint x[]; };
layout(binding = 1) writeonly buffer O { uint y[]; };
shared uint s[64];
void main() {
    uint t = gl_LocalInvocationID.x;
    s[t] = x[gl_GlobalInvocationID.x];
    barrier();
    if (t < 32) s[t] += s[t + 32];
    barrier();
    if (gl_SubgroupID == 0) {
        for (uint d = 16; d > 0; d >>= 1) {
            uint v = s[t];
            if (t < d) v += s[t + d];
            subgroupBarrier();
            s[t] = v;
            subgroupBarrier();
        }
    }
    if (t == 0) y[gl_WorkGroupID.x] = s[0];
}
//~ main: clean
