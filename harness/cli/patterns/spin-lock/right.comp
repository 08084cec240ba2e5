#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Lock { uint taken; } lock;
layout(set = 0, binding = 1) nonprivate buffer Data { uint count; } data;

void main() {
    while (atomicCompSwap(lock.taken, 0u, 1u, ACQUIRE, gl_StorageSemanticsNone, gl_SemanticsRelaxed) != 0u) {
    }
    data.count = data.count + 1;
    atomicStore(lock.taken, 0u, RELEASE);
}
