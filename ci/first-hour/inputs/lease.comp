#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 64) in;
layout(binding = 0) restrict readonly devicecoherent buffer Data { uint data; };
layout(binding = 1) buffer Flag { uint flag; };
layout(binding = 2) restrict writeonly buffer Out { uint o[]; };
void main() {
    uint before = data;
    uint f = atomicLoad(flag, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible);
    uint after = data;
    o[gl_LocalInvocationIndex] = before + 2 * f + 4 * after;
}
