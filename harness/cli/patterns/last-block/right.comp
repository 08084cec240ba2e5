#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
#define ACQUIRE_RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, \
    gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) nonprivate buffer Partial { uint sum[]; } partial;
layout(set = 0, binding = 1) buffer Counter { uint done; } counter;
layout(set = 0, binding = 2) buffer Result { uint total; } result;

void main() {
    partial.sum[gl_WorkGroupID.x] = 1;
    if (atomicAdd(counter.done, 1u, ACQUIRE_RELEASE) == gl_NumWorkGroups.x - 1) {
        uint total = 0;
        for (uint group = 0; group < gl_NumWorkGroups.x; group++) {
            total += partial.sum[group];
        }
        result.total = total;
    }
}
