#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
layout(local_size_x = 1) in;
// 0: nobody yet, 1: someone is at it, 2: done.
layout(set = 0, binding = 0) buffer Once { uint state; } once;
layout(set = 0, binding = 1) nonprivate buffer Data { uint value; } data;
layout(set = 0, binding = 2) buffer Result { uint seen[2]; } result;

void main() {
    uint id = gl_WorkGroupID.x;
    if (atomicLoad(once.state, ACQUIRE) == 2u) {
        result.seen[id] = data.value;
    } else if (atomicCompSwap(once.state, 0u, 1u, RELAXED, gl_StorageSemanticsNone, gl_SemanticsRelaxed) == 0u) {
        data.value = 42;
        atomicStore(once.state, 2u, RELEASE);
    }
}
