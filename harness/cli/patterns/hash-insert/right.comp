#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Table { uint key[2]; uint ready[2]; } table;
layout(set = 0, binding = 1) nonprivate buffer Values { uint value[2]; } values;
layout(set = 0, binding = 2) buffer Result { uint seen; } result;

void main() {
    if (gl_WorkGroupID.x == 0) {
        if (atomicCompSwap(table.key[0], 0u, 7u, RELAXED, gl_StorageSemanticsNone, gl_SemanticsRelaxed) == 0u) {
            values.value[0] = 42;
            atomicStore(table.ready[0], 1u, RELEASE);
        }
    } else if (gl_WorkGroupID.x == 1 && atomicLoad(table.key[0], RELAXED) == 7u && atomicLoad(table.ready[0], ACQUIRE) == 1u) {
        result.seen = values.value[0];
    }
}
