#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 1) in;
#include "world.glsl"
void main() {
    x = 1u;
    atomicExchange(f, 1u, gl_ScopeDevice, 0, 0);
}
