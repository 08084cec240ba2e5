#version 450
// expect: clean
// Bits that are all cleared do not depend on what the memory held.
layout(local_size_x = 16) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
shared uint bits;
void main() {
    if (gl_LocalInvocationID.x == 0) atomicAnd(bits, 0u);
    barrier();
    atomicOr(bits, 1u << gl_LocalInvocationID.x);
    barrier();
    data[gl_GlobalInvocationID.x] = bits;
}
