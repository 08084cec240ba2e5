#version 450
layout(local_size_x=2) in;
layout(std430,binding=0) buffer B { uint v[4]; };
void main(){ atomicAdd(v[0], 1u); }
