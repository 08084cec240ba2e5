// --grid 2
#version 450
layout(local_size_x=1) in;
layout(std430,set=0,binding=0) coherent buffer R { uint head; uint tail; uint slot[4]; uint sum; };
void main(){
  if(gl_WorkGroupID.x==0u){
    for(uint i=0u;i<8u;i++){
      while(i-atomicAdd(tail,0u)>=4u){} memoryBarrierBuffer();
      slot[i&3u]=i*10u;
      memoryBarrierBuffer(); atomicExchange(head,i+1u);
    }
  } else {
    uint s=0u;
    for(uint i=0u;i<8u;i++){
      while(atomicAdd(head,0u)<=i){}
      memoryBarrierBuffer();
      atomicExchange(tail,i+1u);
      s+=slot[i&3u]; //~ race with 9, without a fix
      memoryBarrierBuffer();
    }
    sum=s;
  }
}
//~ main: racy
