// open: all
// expect: refines
// why: no synchronization orders a private load, so another write between both loads races
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { uint x; };
layout(set = 0, binding = 1) buffer Flag { uint f; };
layout(set = 0, binding = 2) buffer Out { uint a; uint b; };
void main() {
    a = x;
    uint seen = atomicLoad(f, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible);
    memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease);
    b = x + seen;
}
