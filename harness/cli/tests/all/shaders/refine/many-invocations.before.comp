// open: all
// expect: refines
// why: each invocation loads once what it loaded twice
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 64) in;
#include "world.glsl"
layout(set = 0, binding = 3) devicecoherent buffer Many { uint d[64]; uint e[64]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint one = d[i];
    uint two = d[i];
    e[i] = one + two;
}
