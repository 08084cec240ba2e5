// expect: divergent barrier
// The size of a sampled image is the same for all invocations, and may leave a workgroup in part.
#version 450
layout(local_size_x = 64) in;
layout(binding = 0, std430) buffer Data { uint data[]; };
layout(binding = 1) uniform sampler2D picture;
shared uint tile[64];
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= uint(textureSize(picture, 0).x)) return;
    tile[gl_LocalInvocationID.x] = data[i];
    barrier();
    data[i] = tile[63 - gl_LocalInvocationID.x];
}
