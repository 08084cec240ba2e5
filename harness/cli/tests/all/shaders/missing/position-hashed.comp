#version 450
// expect: needs-inputs
// The search finds no grid that reaches the second store.
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };
void main() {
    data[gl_GlobalInvocationID.x + 1] = 1;
    if (gl_WorkGroupID.x * 2654435761u == 12345u) {
        data[0] = gl_LocalInvocationIndex;
    }
}
