#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define ACQUIRE_RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, \
    gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Table { uint key[2]; } table;
layout(set = 0, binding = 1) nonprivate buffer Values { uint value[2]; } values;
layout(set = 0, binding = 2) buffer Result { uint seen; } result;

void main() {
    if (gl_WorkGroupID.x == 0) {
        if (atomicCompSwap(table.key[0], 0u, 7u, ACQUIRE_RELEASE, gl_StorageSemanticsNone, gl_SemanticsRelaxed) == 0u) {
            values.value[0] = 42;
        }
    } else if (gl_WorkGroupID.x == 1 && atomicLoad(table.key[0], ACQUIRE) == 7u) {
        result.seen = values.value[0];
    }
}
