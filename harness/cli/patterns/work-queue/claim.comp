#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Queue { uint tail; } queue;
layout(set = 0, binding = 1) nonprivate buffer Items { uint item[2]; } items;
layout(set = 0, binding = 2) buffer Result { uint seen; } result;

void main() {
    if (gl_WorkGroupID.x == 0) {
        uint slot = atomicAdd(queue.tail, 1u, RELEASE);
        items.item[slot] = 42;
    } else if (gl_WorkGroupID.x == 1 && atomicLoad(queue.tail, ACQUIRE) != 0u) {
        result.seen = items.item[0];
    }
}
