// expect: divergent barrier
// Each factor of the count is at least the grid; small ones end invocations before the barrier.
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Shape { uvec3 size; };
layout(binding = 0, std430) buffer Data { uint data[]; };
shared uint tile[64];
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= size.x * size.y * size.z) return;
    tile[gl_LocalInvocationID.x] = data[i];
    barrier();
    data[i] = tile[63 - gl_LocalInvocationID.x];
}
