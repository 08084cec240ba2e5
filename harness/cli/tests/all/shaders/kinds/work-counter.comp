// --grid 2
#version 450
layout(local_size_x=8) in;
layout(std430,set=0,binding=0) buffer Q { uint next; uint total; };
layout(std430,set=0,binding=1) buffer O { uint res[]; };
shared uint job;
void main(){
  for(;;){
    if(gl_LocalInvocationIndex==0u) job=atomicAdd(next,1u);
    barrier();
    uint j=job;
    barrier();
    if(j>=6u) break;
    res[j*8u+gl_LocalInvocationIndex]=j*j;
  }
}
//~ main: clean in the orders tried
