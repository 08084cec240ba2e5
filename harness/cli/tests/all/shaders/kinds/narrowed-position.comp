// --inputs auto
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
// The elements of workgroups that are 1,024 apart coincide.
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };

void main() {
    data[uint(uint16_t(gl_GlobalInvocationID.x))] = 1;
}
//~ main: needs-inputs
