#version 450
// expect: racy
// The loop reads what other workgroups store, in the line of its condition.
layout(local_size_x = 64) in;
layout(push_constant) uniform P { uint n; };
layout(binding = 0) buffer Data { float data[]; };
shared float tile[64];
void main() {
    uint lane = gl_LocalInvocationIndex;
    float sum = 0.0;
    for (uint i = gl_GlobalInvocationID.x; i < n; i += gl_NumWorkGroups.x * 64) sum += data[i];
    tile[lane] = sum;
    barrier();
    for (uint d = 32; d > 0; d >>= 1) {
        if (lane < d) tile[lane] += tile[lane + d];
        barrier();
    }
    if (lane == 0) data[gl_WorkGroupID.x] = tile[0];
}
