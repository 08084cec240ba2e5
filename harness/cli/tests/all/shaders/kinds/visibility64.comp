// --grid 2 --buffer 0.0=random:512
// Clean: atomicMin of depth and payload in 64 bits.
#version 450
#extension GL_EXT_shader_atomic_int64 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 16) in;
layout(std430, binding = 0) readonly buffer Points { uvec2 point[]; };
layout(std430, binding = 1) buffer Pixels { uint64_t pixel[16]; };
void main() {
    uvec2 p = point[gl_GlobalInvocationID.x];
    uint64_t v = (uint64_t(p.y) << 32) | uint64_t(gl_GlobalInvocationID.x);
    atomicMax(pixel[p.x & 15u], v);
}
//~ main: clean
