#version 450
// expect: clean
// The buffer is as long as its author made it, and longer than the assumed one.
layout(local_size_x = 16) in;
layout(std430, binding = 0) buffer Counts { uint counts[]; };
layout(std430, binding = 1) buffer Data { uint data[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (atomicAdd(counts[i + 1000000u], 1u) == 0u) data[i] = 1u;
}
