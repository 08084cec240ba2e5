// --grid 4
#version 450
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
layout(local_size_x = 1) in;
layout(binding = 0) buffer Queue { uint head; uint tail; uint ready[64]; };
layout(binding = 1) nonprivate buffer Work { uint items[64]; };
layout(binding = 2) buffer Out { uint done[64]; };
const int Buffer = gl_StorageSemanticsBuffer;
void main() {
    uint slot = atomicAdd(tail, 1);
    items[slot] = gl_WorkGroupID.x; //~ race with 16
    atomicStore(ready[slot], 1u, gl_ScopeDevice, Buffer, gl_SemanticsRelease | gl_SemanticsMakeAvailable);
    uint mine = atomicAdd(head, 1);
    while (atomicLoad(ready[mine], gl_ScopeDevice, 0, gl_SemanticsRelaxed) == 0) {} //~ fix: give this atomic Acquire and MakeVisible semantics on buffer memory
    done[items[mine]] = mine;
}
//~ main: racy; mended: clean in the orders tried
