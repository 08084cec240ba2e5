#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE_RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, \
    gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible
layout(local_size_x = 1) in;
// One item; its owner lowers the bottom and looks at the top, the thief raises the top and looks at the bottom.
layout(set = 0, binding = 0) buffer Deque { uint top; uint bottom; } deque;
layout(set = 0, binding = 1) buffer Result { uint owner; uint thief; } result;

void main() {
    if (gl_WorkGroupID.x == 0) {
        atomicStore(deque.bottom, 1u, RELAXED);
        memoryBarrier(ACQUIRE_RELEASE);
        result.owner = atomicLoad(deque.top, RELAXED) == 0u ? 1u : 0u;
    } else if (gl_WorkGroupID.x == 1) {
        atomicStore(deque.top, 1u, RELAXED);
        memoryBarrier(ACQUIRE_RELEASE);
        result.thief = atomicLoad(deque.bottom, RELAXED) == 0u ? 1u : 0u;
    }
}
