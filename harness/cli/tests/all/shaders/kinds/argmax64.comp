// --grid 2 --buffer 0.0=random:256
// Clean: value and index in one atomic of 64 bits.
#version 450
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) buffer B { uint64_t best; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    atomicMax(best, (uint64_t(x[i]) << 32) | uint64_t(i));
}
//~ main: clean
