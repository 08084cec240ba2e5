#version 450
// A copy with an offset between two buffers.
layout(local_size_x = 4) in;
layout(std430, binding = 0) readonly buffer B0 { uint given[]; };
layout(std430, binding = 1) buffer B1 { uint data[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < 7u) { data[i] = given[i + 1u] - given[i] + 10u; }
}
