// --grid 2
// Racy: the atomics of the flag are relaxed.
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer Mail { uint data; uint flag; uint seen; };
void main() {
    if (gl_WorkGroupID.x == 0u) {
        data = 42u; //~ race with 14; fix: declare `Mail` coherent
        atomicStore(flag, 1u, gl_ScopeDevice, 0, 0); //~ fix: give this atomic Release and MakeAvailable semantics on buffer memory
    } else {
        while (atomicLoad(flag, gl_ScopeDevice, 0, 0) != 1u) {} //~ fix: give this atomic Acquire and MakeVisible semantics on buffer memory
        seen = data;
    }
}
//~ main: racy; mended: clean
