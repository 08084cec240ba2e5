// --grid 1
// Clean: what an atomic makes available is its place, and what its invocation stored there before as well.
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 2) in;
layout(binding = 0) nonprivate buffer Cell { uint x; uint seen; };
void main() {
    if (gl_LocalInvocationIndex == 0) {
        x = 5;
        atomicExchange(x, 1, gl_ScopeQueueFamily, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
    }
    controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease);
    if (gl_LocalInvocationIndex == 1) {
        seen = atomicLoad(x, gl_ScopeQueueFamily, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
    }
}
//~ main: clean
