#version 450
// One step of a stencil from one buffer to another.
layout(local_size_x = 4) in;
layout(std430, binding = 0) readonly buffer B0 { uint given[]; };
layout(std430, binding = 1) buffer B1 { uint data[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint left = given[(i + 7u) & 7u];
    uint right = given[(i + 1u) & 7u];
    data[i] = left + 2u * given[i] + right;
}
