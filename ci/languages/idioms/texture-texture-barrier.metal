#include <metal_stdlib>
using namespace metal;
kernel void go(texture2d<uint, access::read_write> p [[texture(0)]], device uint *o [[buffer(1)]], uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {
  p.write(uint4(t), uint2(t, 0));
  threadgroup_barrier(mem_flags::mem_texture);
  o[t] = p.read(uint2(7 - t, 0)).x;
}
