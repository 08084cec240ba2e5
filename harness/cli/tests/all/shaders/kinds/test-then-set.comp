// --grid 2
// Racy: a plain test before the atomic, to spare it.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) buffer O { uint best; };
void main() { if (best < gl_GlobalInvocationID.x) atomicMax(best, gl_GlobalInvocationID.x); } //~ race; fix: use `atomicMax` instead of this load and store
//~ main: racy; mended: clean
