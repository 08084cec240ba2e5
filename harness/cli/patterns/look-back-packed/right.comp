#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
layout(local_size_x = 1) in;
// Two bits of state, thirty of value.
layout(set = 0, binding = 0) buffer Status { uint packed[2]; } status;
layout(set = 0, binding = 1) buffer Result { uint state; uint sum; } result;

void main() {
    if (gl_WorkGroupID.x == 0) {
        atomicStore(status.packed[0], 1u << 30 | 42u, RELAXED);
    } else if (gl_WorkGroupID.x == 1) {
        uint word = atomicLoad(status.packed[0], RELAXED);
        result.state = word >> 30;
        result.sum = word & 0x3fffffffu;
    }
}
