// --grid 2 --buffer 0.0=zeros:64
// Racy: all keys are the same.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer K { uint k[]; };
layout(binding = 1) writeonly buffer O { uint o[]; };
void main() { o[k[gl_GlobalInvocationID.x]] = gl_GlobalInvocationID.x; } //~ race, without a fix
//~ main: racy
