#include <metal_stdlib>
using namespace metal;
kernel void go(device uint *b [[buffer(0)]], device uint *o [[buffer(1)]], uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {
  threadgroup uint s[8];
  s[t] = t;
  threadgroup_barrier(mem_flags::mem_device);
  o[t] = s[7 - t];
}
