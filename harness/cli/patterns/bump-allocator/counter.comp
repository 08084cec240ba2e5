#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define ACQUIRE_RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, \
    gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) nonprivate buffer Pool { uint next; uint item[2]; } pool;
layout(set = 0, binding = 2) buffer Result { uint seen; } result;

void main() {
    if (gl_WorkGroupID.x == 0) {
        uint at = atomicAdd(pool.next, 1u, ACQUIRE_RELEASE);
        pool.item[at] = 42;
    } else if (gl_WorkGroupID.x == 1 && atomicAdd(pool.next, 0u, ACQUIRE_RELEASE) != 0u) {
        result.seen = pool.item[0];
    }
}
