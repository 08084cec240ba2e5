// expect: divergent barrier
// A count that keeps every invocation at work would hide the barrier behind the early return.
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; };
layout(set = 0, binding = 0, std430) buffer Data { uint data[]; };
shared uint tile[64];
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= count) return;
    tile[gl_LocalInvocationID.x] = data[i];
    barrier();
    data[i] = tile[63 - gl_LocalInvocationID.x];
}
