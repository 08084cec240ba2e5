// --subgroup-size 32
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer I { uint x[]; };
layout(binding = 1) writeonly buffer O { uint y[]; };
shared uint s[64];
void main() {
    uint t = gl_LocalInvocationID.x;
    s[t] = x[gl_GlobalInvocationID.x];
    barrier();
    if (t < 32) { //~ fix: give each round of this reduction its own lanes, and a barrier after it
        s[t] += s[t + 32];
        if (t < 16) s[t] += s[t + 16];
        if (t < 8) s[t] += s[t + 8];
        if (t < 4) s[t] += s[t + 4];
        if (t < 2) s[t] += s[t + 2];
        if (t < 1) s[t] += s[t + 1]; //~ lockstep with 12
    }
    if (t == 0) y[gl_WorkGroupID.x] = s[0];
}
//~ main: racy; mended: clean
