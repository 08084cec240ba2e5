// --seed 0
#version 450
layout(local_size_x=64) in;
layout(set=0,binding=0) coherent buffer B { uint d[]; };
layout(set=0,binding=1) readonly buffer A { uint a[]; };
layout(push_constant) uniform P { uint n; uint per; } pc;
void main(){ uint i=gl_GlobalInvocationID.x, l=gl_LocalInvocationIndex;
uint st=i*pc.per; for (uint k=0u;k<=pc.per;k++) {
memoryBarrierBuffer(); barrier(); memoryBarrierBuffer();
if (st+k<pc.n) d[st+k]=i; }
}
//~ main: needs-inputs
