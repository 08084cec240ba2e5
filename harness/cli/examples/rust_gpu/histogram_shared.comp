#version 450
// A histogram in workgroup memory.
layout(local_size_x = 8) in;
layout(std430, binding = 0) readonly buffer B0 { uint given[]; };
layout(std430, binding = 1) buffer B1 { uint bins[]; };
shared uint counts[4];

void main() {
    uint i = gl_LocalInvocationIndex;
    if (i < 4u) { counts[i] = 0u; }
    barrier();
    atomicAdd(counts[given[i] % 4u], 1u);
    barrier();
    if (i < 4u) { atomicAdd(bins[i], counts[i]); }
}
