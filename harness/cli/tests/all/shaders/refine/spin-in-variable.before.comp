// open: all
// expect: refines
// why: a variable of the module that each iteration writes first carries nothing to the next one
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 1) in;
#include "world.glsl"
uint seen = 0u;
void main() {
    do {
        seen = acquire_g();
    } while (seen != 1u);
    a = x;
}
