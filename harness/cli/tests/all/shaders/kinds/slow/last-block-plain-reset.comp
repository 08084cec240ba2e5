// --grid 4
#version 450
layout(local_size_x=16) in;
layout(std430,set=0,binding=0) readonly buffer I { float v[]; } src;
layout(std430,set=0,binding=1) coherent buffer P { float part[64]; uint done; float total; };
shared float s[16];
shared bool last;
void main(){
  uint l=gl_LocalInvocationID.x;
  s[l]=src.v[gl_GlobalInvocationID.x];
  for(uint o=8u;o>0u;o>>=1){ barrier(); if(l<o) s[l]+=s[l+o]; }
  if(l==0u){
    part[gl_WorkGroupID.x]=s[0];
    memoryBarrierBuffer();
    uint d=atomicAdd(done,1u); //~ race with 23
    last=(d==gl_NumWorkGroups.x-1u);
    memoryBarrierBuffer();
  }
  barrier();
  if(last && l==0u){
    float t=0.0;
    for(uint i=0u;i<gl_NumWorkGroups.x;i++) t+=part[i];
    total=t; done=0u; //~ fix: use `atomicExchange` for this store, which several invocations may make
  }
}
//~ main: racy; mended: clean in the orders tried
