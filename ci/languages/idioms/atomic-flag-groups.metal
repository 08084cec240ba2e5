#include <metal_stdlib>
using namespace metal;
kernel void go(device atomic_uint *b [[buffer(0)]], device uint *o [[buffer(1)]], uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {
  if (g == 0) {
    o[0] = 1;
    atomic_store_explicit(&b[0], 1u, memory_order_relaxed);
  } else if (atomic_load_explicit(&b[0], memory_order_relaxed) == 1) {
    o[1] = o[0];
  }
}
