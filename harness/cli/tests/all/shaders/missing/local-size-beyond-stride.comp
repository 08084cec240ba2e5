#version 450
// expect: needs-inputs
// A workgroup larger than the declared one reaches the elements of the next one.
layout(local_size_x = 64, local_size_x_id = 0) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
void main() {
    uint i = gl_WorkGroupID.x * 64u + gl_LocalInvocationID.x;
    data[i] = i;
}
