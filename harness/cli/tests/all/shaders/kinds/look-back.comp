// --grid 4
#version 450
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
layout(local_size_x = 32) in;
layout(binding = 0) nonprivate buffer Data { uint values[]; };
layout(binding = 1) buffer State { uint tickets; uint flags[16]; };
layout(binding = 2) nonprivate buffer Parts { uint sums[16]; uint prefixes[16]; };
shared uint part, before;
void main() {
    if (gl_LocalInvocationIndex == 0) part = atomicAdd(tickets, 1);
    barrier();
    uint mine = part;
    if (gl_LocalInvocationIndex == 0) {
        uint sum = 0;
        for (uint i = 0; i < 32; i++) sum += values[mine * 32 + i];
        uint left = 0;
        if (mine > 0) {
            while (atomicLoad(flags[mine - 1], gl_ScopeQueueFamily, gl_StorageSemanticsBuffer,
                              gl_SemanticsAcquire | gl_SemanticsMakeVisible) == 0) {}
            left = prefixes[mine - 1];
        }
        prefixes[mine] = left + sum;
        atomicStore(flags[mine], 1u, gl_ScopeQueueFamily, gl_StorageSemanticsBuffer,
                    gl_SemanticsRelease | gl_SemanticsMakeAvailable);
        before = left;
    }
    // What the barrier of the language orders is shared memory alone.
    controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer | gl_StorageSemanticsShared,
                   gl_SemanticsAcquireRelease);
    values[mine * 32 + gl_LocalInvocationIndex] += before;
}
//~ main: clean in the orders tried
