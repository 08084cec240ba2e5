// --grid 4
#version 450
layout(local_size_x=16) in;
layout(std430,set=0,binding=0) readonly buffer I { float v[]; } src;
layout(std430,set=0,binding=1) coherent buffer P { float part[64]; uint done; float total[4]; };
shared float s[16];
shared bool last;
void main(){
  uint l=gl_LocalInvocationID.x;
  s[l]=src.v[gl_GlobalInvocationID.x];
  for(uint o=8u;o>0u;o>>=1){ barrier(); if(l<o) s[l]+=s[l+o]; }
  if(l==0u){
    uint w=gl_WorkGroupID.x;
    part[w]=s[0]; //~ race with 22
    memoryBarrierBuffer();
    uint d=atomicAdd(done,1u);
    last=(d==gl_NumWorkGroups.x-1u);
    memoryBarrierBuffer();
  }
  barrier(); //~ fix: put `memoryBarrierBuffer();` after this barrier
  if(last && l<gl_NumWorkGroups.x){
    total[l]=part[l]*2.0;
  }
}
//~ main: racy; mended: clean in the orders tried
