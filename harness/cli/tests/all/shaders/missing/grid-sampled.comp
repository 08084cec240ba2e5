#version 450
// expect: undecided
// args: --grid 4096,4096
// Rows overlap in workgroups that a walk of the grid leaves out.
layout(local_size_x = 16, local_size_y = 16) in;
layout(binding = 0) buffer Data { uint data[]; };
void main() {
    data[gl_GlobalInvocationID.y * 4096 + gl_GlobalInvocationID.x] = gl_GlobalInvocationID.x;
}
