// expect: clean
// args: --grid 1 --assume pc.stride>8
// The given condition is all that the proof needs.
#version 450
layout(local_size_x=8) in;
layout(push_constant) uniform P { int stride; } pc;
layout(set=0,binding=0) buffer B { uint o[]; };
void main(){ int i=int(gl_LocalInvocationIndex); o[uint(i*pc.stride + 1000 + (pc.stride==8 ? i : 0) - (pc.stride==8 ? 9*i: 0))]=i; }
