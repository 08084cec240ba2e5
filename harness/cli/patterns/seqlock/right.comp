#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Lock { uint sequence; } lock;
layout(set = 0, binding = 1) buffer Data { uint low; uint high; } data;
layout(set = 0, binding = 2) buffer Result { uint read; uint low; uint high; } result;

void main() {
    if (gl_WorkGroupID.x == 0) {
        atomicStore(lock.sequence, 1u, RELAXED);
        memoryBarrier(RELEASE);
        atomicStore(data.low, 42u, RELAXED);
        atomicStore(data.high, 42u, RELAXED);
        atomicStore(lock.sequence, 2u, RELEASE);
    } else if (gl_WorkGroupID.x == 1) {
        uint before = atomicLoad(lock.sequence, ACQUIRE);
        uint low = atomicLoad(data.low, RELAXED);
        uint high = atomicLoad(data.high, RELAXED);
        memoryBarrier(ACQUIRE);
        if ((before & 1u) == 0u && atomicLoad(lock.sequence, RELAXED) == before) {
            result.read = 1;
            result.low = low;
            result.high = high;
        }
    }
}
