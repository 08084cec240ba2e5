// --grid 2
#version 450
layout(local_size_x=64) in;
layout(std430,set=0,binding=0) readonly buffer I { uint px[]; };
layout(std430,set=0,binding=1) buffer H { uint bins[64]; };
shared uint local[64];
void main(){
  uint l=gl_LocalInvocationIndex;
  if(gl_WorkGroupID.x==0u) bins[l]=0u; //~ race with 16; fix: make the racing accesses atomic (they remain unordered)
  local[l]=0u;
  barrier();
  atomicAdd(local[px[gl_GlobalInvocationID.x]&63u],1u);
  barrier();
  uint c=local[l];
  if(c>0u)
    atomicAdd(bins[l],c);
}
//~ main: racy
