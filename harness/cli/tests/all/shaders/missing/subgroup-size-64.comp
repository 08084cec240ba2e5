#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// expect: needs-inputs
// Written for subgroups of 64, and racy in smaller ones.
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
shared uint total;
void main() {
    uint sum = subgroupAdd(data[gl_GlobalInvocationID.x]);
    if (subgroupElect())
        total = sum;
    barrier();
    data[gl_GlobalInvocationID.x] = total;
}
