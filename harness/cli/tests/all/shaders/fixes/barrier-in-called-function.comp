// --grid 1
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { float a[]; };
shared float t[64];
void reduce(uint i) {
    for (uint s = 32; s > 0; s >>= 1) {
        if (i < s) t[i] += t[i + s];
        barrier();
    }
}
void main() {
    uint i = gl_LocalInvocationIndex;
    t[i] = a[i];
    barrier();
    if (i < 32) {
        reduce(i);
    }
    if (i == 0)
        a[0] = t[0];
}
