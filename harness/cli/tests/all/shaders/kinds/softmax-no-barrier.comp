// --grid 2 --buffer 0.0=floats --push 0=96
#version 450
layout(local_size_x=32) in;
layout(std430,set=0,binding=0) buffer X { float x[]; };
layout(push_constant) uniform P { uint cols; };
shared float red[32];
float reduce(float v, bool mx){ uint l=gl_LocalInvocationID.x;
  red[l]=v; barrier(); //~ race with 10; fix: put `barrier();` before this line
  for(uint s=16u;s>0u;s>>=1){ if(l<s) red[l]=mx?max(red[l],red[l+s]):red[l]+red[l+s]; barrier(); }
  return red[0]; }
void main(){
  uint row=gl_WorkGroupID.x*cols, l=gl_LocalInvocationID.x;
  float m=-1e30; for(uint c=l;c<cols;c+=32u) m=max(m,x[row+c]);
  m=reduce(m,true);
  float sum=0.0; for(uint c=l;c<cols;c+=32u){ float e=exp(x[row+c]-m); x[row+c]=e; sum+=e; }
  sum=reduce(sum,false);
  for(uint c=l;c<cols;c+=32u) x[row+c]/=sum;
}
//~ main: racy; mended: clean
