// --grid 2
// Racy: the lock's barriers are those of the workgroup.
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 1) in;
layout(binding = 0) buffer L { uint lock; };
layout(binding = 1) nonprivate buffer D { uint sum; };
void main() {
    while (atomicCompSwap(lock, 0u, 1u, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible, 0, 0) != 0u) {} //~ fix: widen the scope of this atomic to the queue family
    sum = sum + 1u; //~ race
    atomicStore(lock, 0u, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable); //~ race with 10; fix: widen the scope of this atomic to the queue family
}
//~ main: racy; mended: clean
