#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
layout(local_size_x = 2) in;
layout(set = 0, binding = 0) nonprivate buffer Values { uint aggregate; } values;
layout(set = 0, binding = 1) buffer Status { uint state; } status;
layout(set = 0, binding = 2) buffer Result { uint seen[2]; } result;
shared uint found;

void main() {
    if (gl_WorkGroupID.x == 0) {
        if (gl_LocalInvocationIndex == 0) {
            values.aggregate = 42;
            atomicStore(status.state, 1u, RELEASE);
        }
    } else if (gl_WorkGroupID.x == 1) {
        if (gl_LocalInvocationIndex == 0) {
            found = atomicLoad(status.state, ACQUIRE);
        }
        controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer | gl_StorageSemanticsShared,
                       gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible);
        if (found == 1u) {
            result.seen[gl_LocalInvocationIndex] = values.aggregate;
        }
    }
}
