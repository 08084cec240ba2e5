#version 450
// expect: racy
// 64 invocations write 16 slots: two of them write the same one, whatever the keys are.
layout(local_size_x = 64) in;
layout(push_constant) uniform Pass { uint shift; };
layout(std430, binding = 0) readonly buffer Keys { uint keys[]; };
layout(std430, binding = 1) buffer Counts { uint counts[]; };
shared uint bins[16];
void main() {
    uint lane = gl_LocalInvocationIndex;
    if (lane < 16) bins[lane] = 0;
    barrier();
    bins[(keys[gl_GlobalInvocationID.x] >> shift) & 15u] = lane;
    barrier();
    if (lane < 16) counts[gl_WorkGroupID.x * 16 + lane] = bins[lane];
}
