// --grid 2
// Racy: release without making available.
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 1) in;
layout(binding = 0) buffer F { uint flag; };
layout(binding = 1) nonprivate buffer D { uint data; };
layout(binding = 2) writeonly buffer O { uint o; };
void main() {
    if (gl_WorkGroupID.x == 0) {
        data = 1; //~ unpublished-read with 14; fix: declare `D` coherent
        atomicStore(flag, 1u, gl_ScopeQueueFamily, gl_StorageSemanticsBuffer, gl_SemanticsRelease);
    } else if (atomicLoad(flag, gl_ScopeQueueFamily, gl_StorageSemanticsBuffer, gl_SemanticsAcquire | gl_SemanticsMakeVisible) == 1u) o = data;
}
//~ main: racy; mended: clean
