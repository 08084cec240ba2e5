// open: all
// expect: refines
// why: an operation on constants is its result
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 1) in;
#include "world.glsl"
layout(set = 0, binding = 3) devicecoherent buffer Real { float r; float q; };
float scaled(float value) {
    return value * 0.25 - 2.0;
}
void main() {
    if (r < scaled(-0.5)) {
        a = 1u;
    } else {
        b = 1u;
    }
    q = r * scaled(-0.5);
    release_f(1u);
}
