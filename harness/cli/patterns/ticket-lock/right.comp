#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Lock { uint next; uint serving; } lock;
layout(set = 0, binding = 1) nonprivate buffer Data { uint count; } data;

void main() {
    uint ticket = atomicAdd(lock.next, 1u, RELAXED);
    while (atomicLoad(lock.serving, ACQUIRE) != ticket) {
    }
    data.count = data.count + 1;
    atomicStore(lock.serving, ticket + 1u, RELEASE);
}
