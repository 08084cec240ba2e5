// open: all
// expect: refines
// why: plain stores to different memory have no order
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 1) in;
#include "world.glsl"
layout(set = 0, binding = 3, r32ui) devicecoherent uniform uimage2D picture;
uint acquire_image() {
    return atomicLoad(g, gl_ScopeDevice, gl_StorageSemanticsImage | gl_StorageSemanticsBuffer,
        gl_SemanticsAcquire | gl_SemanticsMakeVisible);
}
void release_image(uint value) {
    atomicStore(f, value, gl_ScopeDevice, gl_StorageSemanticsImage | gl_StorageSemanticsBuffer,
        gl_SemanticsRelease | gl_SemanticsMakeAvailable);
}
void main() {
    imageStore(picture, ivec2(0), uvec4(5u));
    a = 1u;
}
