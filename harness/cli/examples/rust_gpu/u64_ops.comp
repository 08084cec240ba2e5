#version 450
// 64-bit arithmetic.
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : enable
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer B0 { uint data[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint64_t wide = uint64_t(data[i]) * 0x100000001ul + 7ul;
    data[i] = uint(wide >> 32) + uint(wide % 1000ul);
}
