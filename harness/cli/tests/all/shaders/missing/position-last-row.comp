#version 450
// expect: divergent barrier
// 1000 elements are no multiple of the workgroup size.
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };
shared uint tile[64];
void main() {
    if (gl_GlobalInvocationID.x >= 1000) return;
    tile[gl_LocalInvocationIndex] = data[gl_GlobalInvocationID.x];
    barrier();
    data[gl_GlobalInvocationID.x] = tile[63 - gl_LocalInvocationIndex];
}
