// open: closed
// expect: breaks
// why: one invocation never comes to the barrier
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 2) in;
#include "world.glsl"
void main() {
    controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease);
    if (gl_LocalInvocationIndex == 1u) {
        a = 1u;
    }
}
