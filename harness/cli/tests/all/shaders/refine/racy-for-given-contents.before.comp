// open: all
// expect: unknown
// why: two invocations write one word only if the flag is 0, and others may have set it
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 2) in;
#include "world.glsl"
void main() {
    if (acquire_g() == 0u) {
        b = gl_LocalInvocationIndex;
    }
    if (gl_LocalInvocationIndex == 0u) {
        x = 1u;
        release_f(1u);
    }
}
