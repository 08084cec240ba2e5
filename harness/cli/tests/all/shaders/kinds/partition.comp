// --grid 1 --subgroup-size 32 --buffer 0.0=zeros:256
#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle_relative : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_NV_shader_subgroup_partitioned : require
layout(local_size_x = 64) in;
layout(binding = 0) buffer O { uint v[]; };
void main() {
  uint k = (v[gl_LocalInvocationIndex] + gl_LocalInvocationIndex) % 4;
  uvec4 m = subgroupPartitionNV(k);
  uint s = subgroupPartitionedAddNV(1u, m);
  // Many write here, unless each sees the lanes of its own kind.
  if (m.x != 0x11111111u << k || s != 8) v[0] = 1;
  uint n = 0;
  while (true) { uint first = subgroupBroadcastFirst(k); if (first == k) { n = subgroupBallotBitCount(subgroupBallot(true)); break; } }
  v[gl_LocalInvocationIndex] = s + n + subgroupShuffleUp(k, 1) + subgroupBroadcast(k, 3) + subgroupMin(k);
}
//~ main: clean in the orders tried
