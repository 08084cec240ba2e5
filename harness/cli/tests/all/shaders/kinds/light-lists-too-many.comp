// --grid 1,1 --image 0.0=16x16 --push 0=40
#version 450
layout(local_size_x=8,local_size_y=8) in;
layout(set=0,binding=0,r32f) uniform readonly image2D depth;
layout(std430,set=0,binding=2) writeonly buffer Out { uint lists[]; };
layout(push_constant) uniform P { uint nLights; };
const uint MAXL=16u;
shared uint zmin,zmax,cnt;
shared uint idx[MAXL];
void main(){
  uint li=gl_LocalInvocationIndex;
  if(li==0u){ zmin=0xffffffffu; zmax=0u; cnt=0u; }
  barrier();
  uint d=floatBitsToUint(imageLoad(depth,ivec2(gl_GlobalInvocationID.xy)).x);
  atomicMin(zmin,d); atomicMax(zmax,d);
  barrier();
  for(uint i=li;i<nLights;i+=64u){
    if(zmin<=zmax){
      uint s=atomicAdd(cnt,1u);
      idx[s]=i; //~ out-of-bounds, without a fix
    }
  }
  barrier();
  if(li<MAXL) lists[li]=idx[li];
}
//~ main: racy
