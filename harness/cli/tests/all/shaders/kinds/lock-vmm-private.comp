// --grid 2
// Racy: the data is private.
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 1) in;
layout(binding = 0) buffer L { uint lock; };
layout(binding = 1) buffer D { uint sum; };
void main() {
    while (atomicCompSwap(lock, 0u, 1u, gl_ScopeQueueFamily, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible, 0, 0) != 0u) {}
    sum = sum + 1u; //~ race; unpublished-read; fix: declare `D` coherent
    atomicStore(lock, 0u, gl_ScopeQueueFamily, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable);
}
//~ main: racy; mended: clean
