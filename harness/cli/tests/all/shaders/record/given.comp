#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const float scale = 1.0;
layout(set=0,binding=0) buffer A { uint a[]; };
layout(set=0,binding=2) uniform U { vec4 u; };
layout(set=1,binding=1,rgba8) uniform image2D img;
layout(push_constant) uniform P { uint base; float f; } p;
shared uint s[64];
void main(){
  uint i = gl_LocalInvocationIndex;
  s[i] = a[p.base + gl_GlobalInvocationID.x];
  vec4 t = imageLoad(img, ivec2(i,0));
  imageStore(img, ivec2(i,0), t * u.x);
  a[p.base + gl_GlobalInvocationID.x] = s[(i+1)%gl_WorkGroupSize.x] + uint(p.f*scale);
}
