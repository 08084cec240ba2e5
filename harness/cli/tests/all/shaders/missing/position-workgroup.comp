#version 450
// expect: racy
// The grid has to have more than 70 workgroups for the second store.
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };
void main() {
    data[gl_GlobalInvocationID.x + 1] = 1;
    if (gl_WorkGroupID.x == 70) data[0] = gl_LocalInvocationIndex;
}
