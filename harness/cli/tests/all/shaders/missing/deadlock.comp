#version 450
// expect: hang
// The shader sets `ready` after the loop that waits for it.
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 1) in;
layout(binding = 0) buffer Flags { uint ready; uint taken; } flags;
void main() {
    while (atomicLoad(flags.ready, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible) == 0u) {}
    atomicStore(flags.ready, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable);
    atomicAdd(flags.taken, 1u);
}
