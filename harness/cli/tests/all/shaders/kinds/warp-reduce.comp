// --grid 1 --subgroup-size 32
#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 64) in;
layout(binding = 0) buffer O { uint v[]; };
shared uint s[64];
void main() {
  uint l = gl_LocalInvocationIndex;
  s[l] = v[l];
  subgroupMemoryBarrierShared(); subgroupBarrier();
  for (uint k = 16; k > 0; k /= 2) { uint x = s[(l & ~31u) | ((l + k) & 31)]; subgroupBarrier(); s[l] += x; subgroupBarrier(); }
  v[l] = s[l];
}
//~ main: clean
