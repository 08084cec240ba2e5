#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Barrier { uint arrived; } grid;
layout(set = 0, binding = 1) nonprivate buffer Data { uint value[]; } data;
layout(set = 0, binding = 2) buffer Result { uint seen[]; } result;

void main() {
    uint id = gl_WorkGroupID.x;
    data.value[id] = 42;
    atomicAdd(grid.arrived, 1u, RELEASE);
    while (atomicLoad(grid.arrived, ACQUIRE) != gl_NumWorkGroups.x) {
    }
    result.seen[id] = data.value[(id + 1) % gl_NumWorkGroups.x];
}
