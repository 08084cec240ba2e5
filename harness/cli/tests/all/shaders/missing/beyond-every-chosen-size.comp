// No size that holds the accesses is chosen, so the answer needs one.
// expect: needs-inputs
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
void main() {
    data[(1u << 28) + gl_GlobalInvocationID.x / 2u] = gl_GlobalInvocationID.x;
}
