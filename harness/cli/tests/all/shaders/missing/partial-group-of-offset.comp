#version 450
// expect: divergent barrier
// A count and an offset that are both one less let every invocation pass again.
layout(local_size_x = 256) in;
layout(push_constant) uniform Parameters { uint count, start; };
layout(std430, binding = 0) readonly buffer Points { float points[]; };
layout(std430, binding = 1) buffer Range { uint least, most; };
shared uint range[2];
void main() {
    uint index = start + gl_GlobalInvocationID.x;
    if (index >= count) return;
    if (gl_LocalInvocationIndex == 0u) {
        range[0] = 0xffffffffu;
        range[1] = 0u;
    }
    barrier();
    uint value = floatBitsToUint(points[index]);
    atomicMin(range[0], value);
    atomicMax(range[1], value);
    barrier();
    if (gl_LocalInvocationIndex == 0u) {
        atomicMin(least, range[0]);
        atomicMax(most, range[1]);
    }
}
