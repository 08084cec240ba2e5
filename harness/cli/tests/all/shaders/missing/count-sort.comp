#version 450
// expect: needs-inputs
// Another kernel sets the counters to the start of each bin: zeros send all bins to one place.
layout(local_size_x = 64) in;
layout(push_constant) uniform P { uint count; };
layout(std430, binding = 0) readonly buffer Keys { uint keys[]; };
layout(std430, binding = 1) buffer Starts { uint starts[]; };
layout(std430, binding = 2) buffer Sorted { uint sorted[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) sorted[atomicAdd(starts[keys[i] + gl_WorkGroupID.x], 1u)] = keys[i];
}
