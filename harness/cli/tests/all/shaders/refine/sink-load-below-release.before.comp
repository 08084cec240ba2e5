// open: all
// expect: breaks
// why: a write that follows the release races with the load
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 1) in;
#include "world.glsl"
void main() {
    uint early = x;
    release_f(1u);
    a = early;
}
