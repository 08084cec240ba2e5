#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 2) in;
#include "world.glsl"
void main() {
    if (gl_LocalInvocationIndex == 0u) {
        a = atomicAdd(f, 1u);
    }
    controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer,
        gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible);
    if (gl_LocalInvocationIndex == 1u) {
        atomicAdd(f, 1u);
    }
}
