#version 450
#include "parts/width.glsl"
layout(local_size_x = WIDTH) in;
layout(set = 0, binding = 0) buffer Squares { uint squares[]; };
void main() { squares[gl_LocalInvocationIndex + WIDTH * gl_WorkGroupID.x] = gl_LocalInvocationIndex * gl_LocalInvocationIndex; }
