// --grid 2,2 --image 0.0=16x16 --push 0=8
#version 450
layout(local_size_x=8,local_size_y=8) in;
struct Light { vec3 pos; float radius; };
layout(set=0,binding=0,r32f) uniform readonly image2D depth;
layout(std430,set=0,binding=1) readonly buffer Lt { Light lights[]; };
layout(std430,set=0,binding=2) writeonly buffer Out { uint lists[]; };
layout(push_constant) uniform P { uint nLights; };
const uint MAXL=16u;
shared uint zmin,zmax,cnt;
shared uint idx[MAXL];
bool hit(Light l, float a,float b){ return l.pos.z+l.radius>=a && l.pos.z-l.radius<=b; }
void main(){
  uint li=gl_LocalInvocationIndex;
  if(li==0u){ zmin=0xffffffffu; zmax=0u; cnt=0u; }
  barrier();
  uint d=floatBitsToUint(imageLoad(depth,ivec2(gl_GlobalInvocationID.xy)).x);
  atomicMin(zmin,d); atomicMax(zmax,d);
  barrier();
  float a=uintBitsToFloat(zmin), b=uintBitsToFloat(zmax);
  for(uint i=li;i<nLights;i+=64u){
    if(hit(lights[i],a,b)){
      uint s=atomicAdd(cnt,1u);
      if(s<MAXL) idx[s]=i;
    }
  }
  barrier();
  uint n=min(cnt,MAXL);
  uint base=(gl_WorkGroupID.y*gl_NumWorkGroups.x+gl_WorkGroupID.x)*(MAXL+1u);
  if(li==0u) lists[base]=n;
  for(uint i=li;i<n;i+=64u) lists[base+1u+i]=idx[i];
}
//~ main: clean in the orders tried
