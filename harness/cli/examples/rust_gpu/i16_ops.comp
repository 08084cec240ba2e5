#version 450
// 16-bit arithmetic that wraps.
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : enable
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer B0 { uint data[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    int16_t n = int16_t(data[i] * 20000u);
    data[i] = uint(int(n)) & 0xffffu;
}
