#version 450
// Bitwise operators with rotation.
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer B0 { uint data[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint n = data[i];
    data[i] = (n << 3 | n >> 29) ^ (~n & 0xf0u) | (n ^ 0x55u);
}
