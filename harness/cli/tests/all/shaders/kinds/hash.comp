// --grid 2 --buffer 0.0=iota
#version 450
layout(local_size_x=16) in;
layout(std430,set=0,binding=0) readonly buffer I { uint keys[]; };
layout(std430,set=0,binding=1) buffer T { uint tk[64]; uint tv[64]; };
uint hash(uint k){ k^=k>>16; k*=0x7feb352du; k^=k>>15; return k; }
void main(){
  uint k=(keys[gl_GlobalInvocationID.x]&15u)+1u;
  uint h=hash(k)&63u;
  for(uint n=0u;n<64u;n++){
    uint old=atomicCompSwap(tk[h],0u,k);
    if(old==0u||old==k){ atomicAdd(tv[h],1u); break; }
    h=(h+1u)&63u;
  }
}
//~ main: clean in the orders tried
