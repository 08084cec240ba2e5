// open: closed
// expect: breaks
// why: an undefined value may be any number
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 1) in;
#include "world.glsl"
void main() {
    a = 5u;
}
