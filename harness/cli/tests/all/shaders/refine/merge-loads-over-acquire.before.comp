// open: all
// expect: refines
// why: without a release between the loads, no write of others is ordered after the first and before the second
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 1) in;
#include "world.glsl"
void main() {
    uint first = x;
    uint turn = acquire_g();
    uint second = x;
    a = first;
    b = turn + second;
}
