// --grid 2
#version 450
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 4) in;
layout(binding = 0) buffer Best { uint64_t best; };
layout(binding = 0) buffer Halves { uint low; uint high; };
layout(binding = 1) buffer Out { uint seen[]; };
void main() {
    atomicMax(best, (uint64_t(gl_GlobalInvocationID.x) << 32) | uint64_t(gl_LocalInvocationIndex));
    seen[gl_GlobalInvocationID.x] = atomicOr(high, 0u); //~ race with 10, without a fix
}
//~ main: racy
