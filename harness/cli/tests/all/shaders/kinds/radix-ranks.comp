// --grid 2 --subgroup-size 16
#version 450
#extension GL_KHR_shader_subgroup_ballot : enable
#extension GL_KHR_shader_subgroup_basic : enable
layout(local_size_x=64) in;
layout(std430,set=0,binding=0) readonly buffer I { uint keys[]; };
layout(std430,set=0,binding=1) writeonly buffer O { uint outk[]; };
layout(std430,set=0,binding=2) readonly buffer G { uint base[32]; };
layout(push_constant) uniform P { uint shift; };
shared uint cnt[16][4];
shared uint start[16];
void main(){
  uint l=gl_LocalInvocationID.x;
  cnt[l>>2][l&3u]=0u;
  barrier();
  uint key=keys[gl_GlobalInvocationID.x];
  uint d=(key>>shift)&15u;
  uvec4 m=subgroupBallot(true);
  for(uint b=0u;b<4u;b++){
    uvec4 v=subgroupBallot(((d>>b)&1u)!=0u);
    m&= ((d>>b)&1u)!=0u ? v : ~v;
  }
  uint rank=subgroupBallotExclusiveBitCount(m);
  uint total=subgroupBallotBitCount(m);
  if(rank==0u) cnt[d][gl_SubgroupID]=total;
  barrier();
  if(l<16u){
    uint acc=0u;
    for(int s=0;s<4;s++){ uint c=cnt[l][s]; cnt[l][s]=acc; acc+=c; }
    start[l]=base[gl_WorkGroupID.x*16u+l]+l*64u;
  }
  barrier();
  uint pos=start[d]+cnt[d][gl_SubgroupID]+rank;
  outk[pos + gl_WorkGroupID.x*4096u]=key;
}
//~ main: clean
