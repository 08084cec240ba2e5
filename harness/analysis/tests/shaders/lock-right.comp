#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Lock { uint taken; } lock;
layout(set = 0, binding = 1) nonprivate buffer Data { uint count; } data;

void acquire() {
    while (atomicCompSwap(lock.taken, 0u, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer,
                          gl_SemanticsAcquire | gl_SemanticsMakeVisible, gl_StorageSemanticsNone, gl_SemanticsRelaxed) != 0) {
    }
}

void release() {
    atomicStore(lock.taken, 0u, gl_ScopeDevice, gl_StorageSemanticsBuffer,
                gl_SemanticsRelease | gl_SemanticsMakeAvailable);
}

void main() {
    acquire();
    data.count = data.count + 1;
    release();
}
