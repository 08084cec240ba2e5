// --grid 1 --buffer 0.0=iota:128 --subgroup-size 8
// fix: use `atomicMax` instead of this load and store
// The largest value of a workgroup in shared memory, without an atomic.
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer In { uint x[]; };
layout(binding = 1) buffer Out { uint out_most[]; };
shared uint most;
void main() {
    if (gl_LocalInvocationIndex == 0) most = 0;
    barrier();
    most = max(most, x[gl_GlobalInvocationID.x]);
    barrier();
    if (gl_LocalInvocationIndex == 0) out_most[gl_WorkGroupID.x] = most;
}
