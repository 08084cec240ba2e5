// --subgroup-size 1 --grid 1
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 2) in;
layout(binding = 0) buffer Data { uint count; uint seen[2]; };
void main() {
    uint l = gl_LocalInvocationIndex;
    atomicAdd(count, 1u, gl_ScopeQueueFamily, 0, 0);
    controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, gl_StorageSemanticsBuffer, gl_SemanticsAcquireRelease);
    uint wide = atomicLoad(count, gl_ScopeQueueFamily, 0, 0);
    seen[l] = wide + atomicLoad(count, gl_ScopeSubgroup, 0, 0);
}
//~ main: clean
