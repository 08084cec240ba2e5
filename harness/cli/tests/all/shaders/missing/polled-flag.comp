#version 450
// expect: needs-inputs
// Another dispatch sets `ready`: the shader does not write it.
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 1) in;
layout(binding = 0) buffer Flags { uint ready; uint taken; } flags;
layout(binding = 1) buffer Data { uint data[]; };
void main() {
    for (uint i = 1; i <= 3; i++) {
        while (atomicLoad(flags.ready, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible) < i) {}
        data[i] = data[0];
        atomicStore(flags.taken, i, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable);
    }
}
