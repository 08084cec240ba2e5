#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) nonprivate buffer Data { uint value; } data;
layout(set = 0, binding = 1) buffer Flag { uint ready; } flag;
layout(set = 0, binding = 2) buffer Result { uint seen; } result;

void main() {
    if (gl_WorkGroupID.x == 0) {
        data.value = 42;
        atomicStore(flag.ready, 1u, RELEASE);
    } else if (gl_WorkGroupID.x == 1 && atomicLoad(flag.ready, ACQUIRE) == 1u) {
        result.seen = data.value;
    }
}
