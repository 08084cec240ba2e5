// open: all
// expect: unknown
// why: another constant decides the branch, and environments do not compute floats
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 1) in;
#include "world.glsl"
layout(set = 0, binding = 3) devicecoherent buffer Real { float r; float q; };
float scaled(float value) {
    return value * 0.25;
}
void main() {
    if (r < scaled(1.0)) {
        x = 1u;
    }
    release_f(1u);
}
