#version 450
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer Data { uint64_t sum; } data;
shared uint64_t partial;

void main() {
    if (gl_LocalInvocationIndex == 0) partial = 0ul;
    barrier();
    atomicAdd(partial, 1ul);
    barrier();
    if (gl_LocalInvocationIndex == 0) data.sum = partial;
}
