#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 16) in;
layout(binding = 0) buffer Total { uint total; };
shared uint count;

void main() {
    if (gl_LocalInvocationIndex == 0u) atomicStore(count, 0u, gl_ScopeWorkgroup, 0, 0);
    barrier();
    atomicAdd(count, 1u, gl_ScopeWorkgroup, 0, 0);
    barrier();
    if (gl_LocalInvocationIndex == 0u) total = atomicLoad(count, gl_ScopeWorkgroup, 0, 0);
}
