// --grid 2
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 1) in;
layout(buffer_reference, std430) buffer Node { uint value; };
layout(binding = 0) buffer Flag { uint flag; };
layout(binding = 1) buffer Result { uint result; };
layout(push_constant) uniform Start { Node node; };
// The release and the acquire order the accesses of the node, which are private.
void main() {
    if (gl_WorkGroupID.x == 0u) {
        node.value = 1u; //~ unpublished-read with 17; fix: declare `Node` coherent
        atomicStore(flag, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease);
    } else if (atomicLoad(flag, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsAcquire) == 1u) {
        result = node.value;
    }
}
//~ main: racy; mended: clean in the orders tried
