#version 450
#include "width.glsl"
layout(local_size_x = WIDTH) in;
layout(set = 0, binding = 0) buffer Ranks { uint ranks[]; };
void main() { ranks[gl_GlobalInvocationID.x] = gl_GlobalInvocationID.x; }
