#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Lock { int readers; } lock;
layout(set = 0, binding = 1) nonprivate buffer Data { uint value; } data;
layout(set = 0, binding = 2) buffer Result { uint seen; } result;

void main() {
    if (gl_WorkGroupID.x == 0) {
        // A reader; -1 is a writer.
        int before = atomicLoad(lock.readers, RELAXED);
        if (before >= 0 && atomicCompSwap(lock.readers, before, before + 1, ACQUIRE, gl_StorageSemanticsNone,
                                          gl_SemanticsRelaxed) == before) {
            result.seen = data.value;
            atomicAdd(lock.readers, -1, RELEASE);
        }
    } else if (atomicCompSwap(lock.readers, 0, -1, ACQUIRE, gl_StorageSemanticsNone, gl_SemanticsRelaxed) == 0) {
        data.value = 42;
        atomicStore(lock.readers, 0, RELEASE);
    }
}
