// --grid 2
#version 450
layout(local_size_x=8) in;
struct Node { vec4 lo; vec4 hi; };
layout(std430,set=0,binding=0) coherent buffer N { Node node[]; };
layout(std430,set=0,binding=1) buffer V { uint visits[]; };
void main(){
  uint leaf=15u+gl_GlobalInvocationID.x;
  vec3 p=vec3(float(leaf),1.0,2.0);
  node[leaf].lo=vec4(p,0); node[leaf].hi=vec4(p+1.0,0);
  uint i=leaf;
  while(i!=0u){
    uint par=(i-1u)>>1;
    memoryBarrierBuffer();
    if(atomicAdd(visits[par],1u)==0u) return;
    memoryBarrierBuffer();
    Node a=node[2u*par+1u], b=node[2u*par+2u];
    node[par].lo=min(a.lo,b.lo); node[par].hi=max(a.hi,b.hi);
    i=par;
  }
}
//~ main: clean in the orders tried
