// --grid 2
// Clean: bytes of one word, each its invocation's own.
#version 450
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
layout(local_size_x = 8) in;
layout(binding = 0) writeonly buffer B { uint8_t bytes[]; };
void main() { bytes[gl_GlobalInvocationID.x] = uint8_t(gl_GlobalInvocationID.x); }
//~ main: clean
