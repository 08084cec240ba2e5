// --grid 2
#version 450
layout(local_size_x=4) in;
layout(std430,set=0,binding=0) coherent buffer Qb { uint enq; uint deq; uint seq[4]; uint data[4]; };
layout(std430,set=0,binding=1) buffer O { uint got[]; };
void main(){
  if(gl_LocalInvocationIndex!=0u) return;
  uint pos=atomicAdd(enq,1u);
  uint cell=pos&3u;
  data[cell]=gl_WorkGroupID.x+100u;
  memoryBarrierBuffer();
  atomicExchange(seq[cell],pos+1u);
  uint d=atomicAdd(deq,1u);
  while(atomicAdd(seq[d&3u],0u)!=d+1u){}
  memoryBarrierBuffer();
  got[d]=data[d&3u];
}
//~ main: clean
