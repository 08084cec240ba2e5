// open: all
// expect: unknown
// why: no path decides alone how often the volatile word is loaded
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 1) in;
#include "world.glsl"
layout(set = 0, binding = 3) volatile buffer Words { uint v; };
void main() {
    if (x == 1u) {
    a = v;
    b = v;
    }
}
