#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
// expect: clean
// Integers that the code turns into addresses.
layout(local_size_x = 8) in;
layout(buffer_reference, std430) buffer Numbers { uint number[]; };
layout(push_constant) uniform Where { uint64_t from; uvec2 to; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    Numbers(to).number[i] = Numbers(from + 64ul).number[i] + 1;
}
