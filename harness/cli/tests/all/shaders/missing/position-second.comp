#version 450
// expect: needs-inputs
// Only with three workgroups do two make the second store.
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };
void main() {
    data[gl_GlobalInvocationID.x + 1] = 1;
    if (gl_WorkGroupID.x > 0 && gl_LocalInvocationIndex == 0) {
        data[0] = gl_WorkGroupID.x;
    }
}
