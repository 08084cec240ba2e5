// open: all
// expect: breaks
// why: an invocation that acquires the flag may read the value from before
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer M { uint a; uint b; } m;
void main() {
    atomicStore(m.a, 1u, gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
    atomicStore(m.b, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease);
}
