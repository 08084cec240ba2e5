// One workgroup is clean, but every workgroup writes the same elements.
// expect: needs-inputs
// args: --inputs zeros
#version 450
layout(local_size_x = 8) in;
layout(set = 0, binding = 0) buffer Data { uint data[64]; };
void main() {
    data[gl_LocalInvocationID.x] = gl_WorkGroupID.x;
}
