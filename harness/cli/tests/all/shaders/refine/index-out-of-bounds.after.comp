#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 2) in;
#include "world.glsl"
layout(set = 0, binding = 3) buffer Words { uint words[8]; };
void main() {
    words[gl_LocalInvocationIndex * 8u] = 1u;
}
