#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// expect: needs-inputs
// Written for subgroups of 32: in larger ones, lanes of the first subgroup share elements.
layout(local_size_x = 128) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
shared uint sums[4];
shared uint offsets[128];
void main() {
    uint sum = subgroupInclusiveAdd(data[gl_GlobalInvocationID.x]);
    if (gl_SubgroupInvocationID == 31)
        sums[gl_SubgroupID] = sum;
    barrier();
    if (gl_SubgroupID == 0) {
        for (uint i = gl_SubgroupInvocationID; i < 128; i += 32)
            offsets[i] = sums[i / 32];
    }
    barrier();
    data[gl_GlobalInvocationID.x] = sum + offsets[gl_LocalInvocationIndex];
}
