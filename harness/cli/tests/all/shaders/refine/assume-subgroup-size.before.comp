// open: closed
// expect: breaks
// why: a device may have subgroups of another size
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "world.glsl"
void main() {
    if (gl_LocalInvocationIndex == 0u) a = gl_SubgroupSize;
}
