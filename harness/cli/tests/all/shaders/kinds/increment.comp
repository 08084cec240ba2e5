// --grid 2
// Racy: of `x++` glslang 12 leaves the store private, though the buffer is declared coherent.
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
    count++; //~ lost-order; fix: write `count = count + 1` instead of `count++`, because glslang drops the qualifier on the store of the latter
    atomicStore(wants[me], 0u, REL);
}
//~ main: clean in the orders tried; mended: clean
