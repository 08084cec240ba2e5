#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
#define AGGREGATE 1u
#define PREFIX 2u
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) nonprivate buffer Values { uint aggregate[3]; uint prefix[3]; } values;
layout(set = 0, binding = 1) buffer Status { uint state[3]; } status;
layout(set = 0, binding = 2) buffer Result { uint prefix; } result;

void main() {
    uint id = gl_WorkGroupID.x;
    if (id < 2) {
        values.aggregate[id] = 1;
        atomicStore(status.state[id], AGGREGATE, RELEASE);
        if (id == 0) {
            values.prefix[id] = 1;
            atomicStore(status.state[id], PREFIX, RELEASE);
        }
    }
    if (id != 2) {
        return;
    }
    uint sum = 0;
    for (int at = 1; at >= 0; at--) {
        uint state = atomicLoad(status.state[at], ACQUIRE);
        if (state == PREFIX) {
            result.prefix = sum + values.prefix[at];
        } else if (state == AGGREGATE) {
            sum += values.aggregate[at];
            continue;
        }
        break;
    }
}
