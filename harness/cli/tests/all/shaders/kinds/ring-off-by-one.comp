// --grid 2
#version 450
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
layout(local_size_x = 1) in;
layout(binding = 0) buffer Ring { uint head; uint tail; };
layout(binding = 1) queuefamilycoherent buffer Slots { uint slots[4]; };
layout(binding = 2) buffer Out { uint got[16]; };
#define ACQ gl_ScopeQueueFamily, gl_StorageSemanticsBuffer, gl_SemanticsAcquire
#define REL gl_ScopeQueueFamily, gl_StorageSemanticsBuffer, gl_SemanticsRelease
void main() {
    if (gl_WorkGroupID.x == 0) {
        for (uint i = 0; i < 16; i++) {
            while (i - atomicLoad(head, ACQ) > 4) {}
            slots[i % 4] = i * 3; //~ race with 21, without a fix
            atomicStore(tail, i + 1, REL);
        }
    } else {
        for (uint i = 0; i < 16; i++) {
            while (atomicLoad(tail, ACQ) == i) {}
            got[i] = slots[i % 4];
            atomicStore(head, i + 1, REL);
        }
    }
}
//~ main: racy
