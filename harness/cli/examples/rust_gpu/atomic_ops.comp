#version 450
// Counters by several atomics.
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer B0 { uint counts[]; };

void main() {
    uint i = gl_LocalInvocationIndex;
    atomicAdd(counts[0], i);
    atomicMax(counts[1], i * 3u);
    atomicMin(counts[2], i + 4u);
    atomicOr(counts[3], 1u << i);
    atomicXor(counts[4], 5u);
}
