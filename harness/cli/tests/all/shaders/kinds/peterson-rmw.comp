// --grid 2 --timeout 60s
// Clean: the turn is exchanged with acquire and release, and who exchanges it second sees what the first wants.
#version 450
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
layout(local_size_x = 1) in;
layout(binding = 0) queuefamilycoherent buffer Lock { uint wants[2]; uint turn; uint count; };
#define ACQ gl_ScopeQueueFamily, gl_StorageSemanticsBuffer, gl_SemanticsAcquire
#define REL gl_ScopeQueueFamily, gl_StorageSemanticsBuffer, gl_SemanticsRelease
#define BOTH gl_ScopeQueueFamily, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease
void main() {
    uint me = gl_WorkGroupID.x, other = 1u - me;
    atomicStore(wants[me], 1u, REL);
    atomicExchange(turn, other, BOTH);
    while (atomicLoad(wants[other], ACQ) == 1u && atomicLoad(turn, ACQ) == other) {}
    count = count + 1u;
    atomicStore(wants[me], 0u, REL);
}
//~ main: clean
