#version 450
// expect: racy
// The chosen size of 64 does not reach the second store.
layout(local_size_x_id = 0) in;
layout(binding = 0) buffer Data { uint data[]; };
void main() {
    data[gl_GlobalInvocationID.x + 1] = 1;
    if (gl_LocalInvocationIndex >= 100) data[0] = gl_LocalInvocationIndex;
}
