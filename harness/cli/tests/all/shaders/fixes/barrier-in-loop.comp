// --grid 1
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { float a[]; };
shared float t[64];
void main() {
    uint i = gl_LocalInvocationIndex;
    t[i] = a[i];
    barrier();
    for (uint s = 32; s > 0; s >>= 1) {
        if (i < s)
            t[i] += t[i + s];
    }
    if (i == 0)
        a[0] = t[0];
}
