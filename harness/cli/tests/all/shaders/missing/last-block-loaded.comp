#version 450
// expect: racy
// One workgroup has no race with others, which refutes nothing.
layout(local_size_x = 8) in;
layout(std430, binding = 0) readonly buffer In { uint value[]; };
layout(std430, binding = 1) coherent buffer Parts { uint part[]; };
layout(std430, binding = 2) buffer Control { uint arrived, result; };
shared uint seen;
void main() {
    if (gl_LocalInvocationIndex == 0) {
        part[gl_WorkGroupID.x] = value[gl_GlobalInvocationID.x] & 1u;
        seen = atomicAdd(arrived, 1u);
    }
    barrier();
    if (seen != gl_NumWorkGroups.x - 1u) return;
    for (uint i = gl_LocalInvocationIndex; i < gl_NumWorkGroups.x; i += 8) atomicAdd(result, part[i]);
}
