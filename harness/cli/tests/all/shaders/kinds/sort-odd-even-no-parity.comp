// --grid 1
#version 450
layout(local_size_x=16) in;
struct Item { vec3 a; float k; uint id[2]; };
layout(std430,set=0,binding=0) buffer O { Item o[]; };
shared Item items[16];
void swapItems(inout Item x, inout Item y){ Item t=x; x=y; y=t; }
void main(){
  uint l=gl_LocalInvocationID.x;
  items[l].a=vec3(l); items[l].k=float(15u-l); items[l].id[0]=l; items[l].id[1]=l*2u;
  barrier();
  for(uint ph=0u;ph<16u;ph++){
    if(l<15u){
      if(items[l].k>items[l+1u].k) swapItems(items[l],items[l+1u]); //~ race, without a fix
    }
    barrier();
  }
  o[l]=items[l];
}
//~ main: racy
