#version 450
// expect: needs-inputs
// A ring buffer: a mask of all positions keeps the elements of invocations different.
layout(local_size_x = 64) in;
layout(push_constant) uniform Ring { uint mask; };
layout(binding = 0) buffer Data { uint data[]; };
void main() { data[gl_GlobalInvocationID.x & mask] = gl_GlobalInvocationID.x; }
