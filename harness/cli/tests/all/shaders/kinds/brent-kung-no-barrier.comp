// --inputs auto
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer D { uint d[]; };
shared uint s[128];
void main() {
    uint l = gl_LocalInvocationID.x;
    uint base = gl_WorkGroupID.x * 128;
    s[l] = d[base + l];
    s[l + 64] = d[base + l + 64];
    for (uint stride = 1; stride <= 64; stride *= 2) {
        barrier();
        uint i = (l + 1) * stride * 2 - 1;
        if (i < 128) s[i] += s[i - stride];
    }
    for (uint stride = 32; stride > 0; stride /= 2) {
        uint i = (l + 1) * stride * 2 - 1;
        if (i + stride < 128) s[i + stride] += s[i]; //~ race; fix: put `barrier();` before this line
    }
    barrier();
    d[base + l] = s[l];
    d[base + l + 64] = s[l + 64];
}
//~ main: racy; mended: clean
