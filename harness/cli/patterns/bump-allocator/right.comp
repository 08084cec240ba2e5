#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) nonprivate buffer Pool { uint next; uint item[2]; } pool;
layout(set = 0, binding = 1) buffer List { uint published; } list;
layout(set = 0, binding = 2) buffer Result { uint seen; } result;

void main() {
    if (gl_WorkGroupID.x == 0) {
        uint at = atomicAdd(pool.next, 1u, RELAXED);
        pool.item[at] = 42;
        atomicStore(list.published, at + 1u, RELEASE);
    } else if (gl_WorkGroupID.x == 1) {
        uint at = atomicLoad(list.published, ACQUIRE);
        if (at != 0u) {
            result.seen = pool.item[at - 1u];
        }
    }
}
