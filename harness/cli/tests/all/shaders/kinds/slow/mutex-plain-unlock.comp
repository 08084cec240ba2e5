// --grid 2
#version 450
layout(local_size_x=1) in;
layout(std430,set=0,binding=0) coherent buffer L { uint lock; uint count; };
void main(){
  while(atomicCompSwap(lock,0u,1u)!=0u) {}
  memoryBarrierBuffer();
  count++; memoryBarrierBuffer();
  lock=0u;
}
