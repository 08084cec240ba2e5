// expect: divergent barrier
// The count is three elements for each of an input.
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Shape { uint vertices; };
layout(binding = 0, std430) buffer Data { uint data[]; };
shared uint tile[64];
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= 3 * vertices) return;
    tile[gl_LocalInvocationID.x] = data[i];
    barrier();
    data[i] = tile[63 - gl_LocalInvocationID.x];
}
