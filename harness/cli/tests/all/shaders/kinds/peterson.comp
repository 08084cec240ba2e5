// --grid 2 --timeout 60s
// Racy: without sequential consistency both may enter; fences do not forbid that each reads before it sees the other.
#version 450
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
layout(local_size_x = 1) in;
layout(binding = 0) queuefamilycoherent buffer Lock { uint wants[2]; uint turn; uint count; };
#define ACQ gl_ScopeQueueFamily, gl_StorageSemanticsBuffer, gl_SemanticsAcquire
#define REL gl_ScopeQueueFamily, gl_StorageSemanticsBuffer, gl_SemanticsRelease
void main() {
    uint me = gl_WorkGroupID.x, other = 1u - me;
    atomicStore(wants[me], 1u, REL);
    atomicStore(turn, other, REL);
    memoryBarrier(gl_ScopeQueueFamily, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease);
    while (atomicLoad(wants[other], ACQ) == 1u && atomicLoad(turn, ACQ) == other) {}
    count = count + 1u; //~ race; fix: use `atomicAdd` instead of this load and store
    atomicStore(wants[me], 0u, REL);
}
//~ main: racy; mended: clean
