// --grid 1 --buffer 0.0=zeros:256
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer N { uint n[]; };
layout(std430, binding = 1) buffer D { uint d[]; };
shared uint s[64];
void main() {
    uint l = gl_LocalInvocationIndex;
    uint sum = 0;
    for (uint i = 0; i < n[l] + 2; i++) {
        s[l] = i + l;
        sum += s[63 - l];
    }
    d[l] = sum;
}
