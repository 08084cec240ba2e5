#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
layout(local_size_x = 1) in;
// One place: head counts what was taken, tail what was put.
layout(set = 0, binding = 0) buffer Ring { uint head; uint tail; } ring;
layout(set = 0, binding = 1) nonprivate buffer Items { uint item; } items;
layout(set = 0, binding = 2) buffer Result { uint seen; } result;

void main() {
    if (gl_WorkGroupID.x == 0) {
        items.item = 1;
        atomicStore(ring.tail, 1u, RELEASE);
        if (atomicLoad(ring.head, ACQUIRE) == 1u) {
            items.item = 2;
            atomicStore(ring.tail, 2u, RELEASE);
        }
    } else if (gl_WorkGroupID.x == 1 && atomicLoad(ring.tail, ACQUIRE) == 1u) {
        result.seen = items.item;
        atomicStore(ring.head, 1u, RELEASE);
    }
}
