// --grid 2
#version 450
layout(local_size_x=1) in;
layout(std430,set=0,binding=0) coherent buffer L { uint lock; uint count; };
void main(){
  while(atomicCompSwap(lock,0u,1u)!=0u) {}
  memoryBarrierBuffer();
  count++; memoryBarrierBuffer(); //~ race; fix: use `atomicAdd` instead of this load and store
  lock=0u; //~ race with 6; fix: make this access atomic (it remains unordered)
}
//~ main: racy; mended: clean
