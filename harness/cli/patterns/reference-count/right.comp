#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
#define ACQUIRE_RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, \
    gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible
layout(local_size_x = 1) in;
// Two references are held; whoever drops the last one reuses the object.
layout(set = 0, binding = 0) buffer Count { uint dropped; } count;
layout(set = 0, binding = 1) nonprivate buffer Object { uint value[2]; } object;
layout(set = 0, binding = 2) buffer Result { uint sum; } result;

void main() {
    if (gl_WorkGroupID.x > 1) {
        return;
    }
    object.value[gl_WorkGroupID.x] = 21;
    if (atomicAdd(count.dropped, 1u, ACQUIRE_RELEASE) == 1u) {
        result.sum = object.value[0] + object.value[1];
        object.value[0] = 0;
        object.value[1] = 0;
    }
}
