#version 450
// expect: needs-inputs
// The fifth workgroup writes the places of the first.
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };

void main() {
    data[gl_GlobalInvocationID.x % 256] = gl_WorkGroupID.x;
}
