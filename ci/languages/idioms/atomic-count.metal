#include <metal_stdlib>
using namespace metal;
kernel void go(device atomic_uint *b [[buffer(0)]], device uint *o [[buffer(1)]], uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {
  o[1 + t] = atomic_fetch_add_explicit(&b[0], 1u, memory_order_relaxed);
}
