#version 450
#extension GL_KHR_shader_subgroup_basic : require
// expect: needs-inputs
// Written for subgroups of at least 16.
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
shared uint row[64];
void main() {
    row[gl_LocalInvocationID.x] = gl_GlobalInvocationID.x;
    if (gl_SubgroupSize >= 16) barrier();
    data[gl_GlobalInvocationID.x] = row[63 - gl_LocalInvocationID.x];
}
