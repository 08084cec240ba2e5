// The buffer is not given; the accesses are beyond the size that is assumed first.
// expect: racy
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
void main() {
    data[(1u << 20) + gl_GlobalInvocationID.x / 2u] = gl_GlobalInvocationID.x;
}
