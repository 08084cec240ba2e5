#version 450
// A sum over a workgroup.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) buffer Data { uint data[]; };
layout(set = 0, binding = 1, std430) buffer Sums { uint sums[]; };
shared uint tile[64];
void main() {
    uint i = gl_LocalInvocationID.x;
    tile[i] = data[gl_GlobalInvocationID.x];
    barrier();
    for (uint step = 32; step > 0; step /= 2) {
        if (i < step) tile[i] += tile[i + step];
        barrier();
    }
    if (i == 0) sums[gl_WorkGroupID.x] = tile[0];
}
