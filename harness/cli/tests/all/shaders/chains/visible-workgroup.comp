//
// The acquire shows it to the workgroup, and the read looks there.
#version 460
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
layout(local_size_x = 2) in;
layout(binding = 0) nonprivate buffer D { uint d; };
layout(binding = 0) devicecoherent buffer DD { uint dd; };
layout(binding = 0) workgroupcoherent buffer DW { uint dw; };
layout(binding = 0) subgroupcoherent buffer DS { uint ds; };
layout(binding = 1) buffer F { uint f; uint g; };
layout(binding = 2) buffer R { uint r; };
const int BUF = gl_StorageSemanticsBuffer, ACQ = gl_SemanticsAcquire, REL = gl_SemanticsRelease, BOTH = gl_SemanticsAcquireRelease;
const int MA = gl_SemanticsMakeAvailable, MV = gl_SemanticsMakeVisible;
const int DEV = gl_ScopeDevice, WG = gl_ScopeWorkgroup, SG = gl_ScopeSubgroup;
void main() {
    uint w = gl_WorkGroupID.x, t = gl_LocalInvocationIndex;
    if (w == 0) {
        if (t == 0) { dd = 1; atomicStore(f, 1u, DEV, BUF, REL); }
    } else if (w == 1) {
        if (t == 0 && atomicLoad(f, DEV, BUF, ACQ | MV) == 1) atomicStore(g, 1u, WG, 0, 0);
        controlBarrier(WG, WG, BUF, BOTH);
        if (t == 1 && atomicLoad(g, WG, 0, 0) == 1) r = dw;
    }
}
