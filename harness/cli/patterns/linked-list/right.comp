#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#define RELAXED gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed
#define ACQUIRE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible
#define RELEASE gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer List { uint head; } list;
layout(set = 0, binding = 1) nonprivate buffer Nodes { uint value[3]; uint next[3]; } nodes;
layout(set = 0, binding = 2) buffer Result { uint seen; uint value; uint next; } result;

void main() {
    if (gl_WorkGroupID.x == 0) {
        uint before = atomicLoad(list.head, RELAXED);
        nodes.value[1] = 42;
        nodes.next[1] = before;
        atomicCompSwap(list.head, before, 1u, RELEASE, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
    } else if (gl_WorkGroupID.x == 1) {
        uint node = atomicLoad(list.head, ACQUIRE);
        if (node == 1u) {
            result.seen = 1;
            result.value = nodes.value[1];
            result.next = nodes.next[1];
        }
    }
}
