// The same behind an address.
// expect: needs-inputs
#version 460
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430) buffer Data { uint data[]; };
layout(push_constant) uniform Arguments { Data data; } arguments;
void main() {
    arguments.data.data[(1u << 28) + gl_GlobalInvocationID.x / 2u] = gl_GlobalInvocationID.x;
}
