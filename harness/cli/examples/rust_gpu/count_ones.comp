#version 450
// Bits of numbers.
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer B0 { uint data[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint n = data[i] * 77u;
    data[i] = uint(bitCount(n) * 100 + findMSB(n) * 10 + findLSB(n));
}
