// --grid 1,1 --push 0=32
#version 450
layout(local_size_x=8,local_size_y=8) in;
layout(std430,set=0,binding=0) readonly buffer A { float a[]; };
layout(std430,set=0,binding=1) readonly buffer B { float b[]; };
layout(std430,set=0,binding=2) writeonly buffer C { float c[]; };
layout(push_constant) uniform P { uint K; };
const uint N=16u;
shared float ta[2][8][9];
shared float tb[2][8][9];
void load(uint buf,uint k0,uvec2 l,uvec2 g){
  ta[buf][l.y][l.x]=a[g.y*K+k0+l.x]; //~ race with 22; fix: put `barrier();` before this line
  tb[buf][l.y][l.x]=b[(k0+l.y)*N+g.x]; //~ race with 22
}
void main(){
  uvec2 l=gl_LocalInvocationID.xy, g=gl_GlobalInvocationID.xy;
  float acc=0.0;
  load(0u,0u,l,g);
  uint cur=0u;
  for(uint k=0u;k<K;k+=8u){
    barrier();
    for(uint i=0u;i<8u;i++) acc+=ta[cur][l.y][i]*tb[cur][i][l.x];
    if(k+8u<K) load(cur,k+8u,l,g);
  }
  c[g.y*N+g.x]=acc;
}
//~ main: racy; mended: clean
