#version 450
#include "size.glsl"
layout(local_size_x = SIZE) in;
layout(set = 0, binding = 0, std430) buffer Data { uint data[]; };
void main() { data[gl_GlobalInvocationID.x] = SIZE; }
