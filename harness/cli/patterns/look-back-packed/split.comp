#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Status { uint state[2]; uint sum[2]; } status;
layout(set = 0, binding = 1) buffer Result { uint state; uint sum; } result;

void main() {
    if (gl_WorkGroupID.x == 0) {
        atomicStore(status.sum[0], 42u, RELAXED);
        atomicStore(status.state[0], 1u, RELAXED);
    } else if (gl_WorkGroupID.x == 1) {
        result.state = atomicLoad(status.state[0], RELAXED);
        result.sum = atomicLoad(status.sum[0], RELAXED);
    }
}
