#version 450
// Arithmetic that wraps.
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer B0 { uint data[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint n = data[i];
    data[i] = n * 0x9e3779b9u + (0u - n);
}
