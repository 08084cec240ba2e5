#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 1) in;
#include "world.glsl"
void main() {
    switch (x) {
    case 10u: b = 1u; break;
    case 20u: b = 2u; break;
    case 30u: b = 3u; break;
    case 40u: b = 4u; break;
    case 50u: b = 5u; break;
    case 60u: b = 7u; break;
    }
}
