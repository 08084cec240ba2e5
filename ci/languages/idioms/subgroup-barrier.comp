#version 460
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 8) in;
layout(set = 0, binding = 0) coherent buffer BB { uint b[8]; };
layout(set = 0, binding = 1) buffer OB { uint o[8]; };
shared uint s[8];
void main() {
  uint t = gl_LocalInvocationIndex;
  s[t] = t;
  subgroupBarrier();
  o[t] = s[7u - t];
}
