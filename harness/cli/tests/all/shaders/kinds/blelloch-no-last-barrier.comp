// --grid 1
#version 450
layout(local_size_x=32) in;
layout(std430,set=0,binding=0) buffer D { uint v[]; } d;
shared uint t[64];
void main(){
  uint l=gl_LocalInvocationID.x, b=gl_WorkGroupID.x*64u;
  t[2u*l]=d.v[b+2u*l]; t[2u*l+1u]=d.v[b+2u*l+1u]; //~ race with 21; fix: declare `d` coherent
  uint off=1u;
  for(uint n=32u;n>0u;n>>=1){
    barrier();
    if(l<n){ uint ai=off*(2u*l+1u)-1u, bi=off*(2u*l+2u)-1u; t[bi]+=t[ai]; }
    off*=2u;
  }
  if(l==0u){ t[63]=0u; }
  for(uint n=1u;n<64u;n*=2u){
    off>>=1;
    barrier();
    if(l<n){ uint ai=off*(2u*l+1u)-1u, bi=off*(2u*l+2u)-1u; uint x=t[ai]; t[ai]=t[bi]; t[bi]+=x; } //~ race with 21
  }
  d.v[b+l]=t[l]; d.v[b+l+32u]=t[l+32u]; //~ fix: put `memoryBarrierBuffer(); barrier(); memoryBarrierBuffer();` before this line
}
//~ main: racy; mended: clean
