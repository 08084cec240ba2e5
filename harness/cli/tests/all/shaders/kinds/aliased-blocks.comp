// --grid 1
// The words of a buffer are written and read without an order; the bytes of the same binding are somebody else's.
#version 460
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer D8 { uint8_t bytes[]; };
layout(std430, binding = 0) buffer D32 { uint words[]; };
layout(std430, binding = 1) buffer Out { uint sums[]; };

void main() {
    uint me = gl_LocalInvocationIndex;
    if (me == 0u) bytes[100] = uint8_t(3);
    words[me] = me; //~ race with 16; fix: declare `D32` coherent
    barrier(); //~ fix: put `memoryBarrierBuffer();` before and after this barrier
    sums[me] = words[me ^ 1u];
}
//~ main: racy; mended: clean
