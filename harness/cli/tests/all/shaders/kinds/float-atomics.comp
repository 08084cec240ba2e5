// --grid 4
#version 450
#extension GL_EXT_shader_atomic_float : require
#extension GL_EXT_shader_atomic_float2 : require
layout(local_size_x = 16) in;
layout(binding = 0) buffer Data { float total; float most; float values[]; };
shared float part;
void main() {
    if (gl_LocalInvocationIndex == 0) part = 0.0;
    barrier();
    atomicAdd(part, values[gl_GlobalInvocationID.x]);
    atomicMax(most, float(gl_GlobalInvocationID.x));
    barrier();
    if (gl_LocalInvocationIndex == 0) atomicAdd(total, part);
}
//~ main: clean
