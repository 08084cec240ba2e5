// --grid 2,1,2
// Racy: the same for accesses that are not private: an end of a section publishes nothing by itself.
#version 450
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_ARB_fragment_shader_interlock : require
layout(pixel_interlock_ordered) in;
layout(binding = 0) nonprivate buffer Pixels { uint pixels[]; };
void main() {
    uint at = uint(gl_FragCoord.x);
    beginInvocationInterlockARB();
    pixels[at] = pixels[at] * 3 + gl_PrimitiveID; //~ race; unpublished-read; fix: declare `Pixels` coherent
    endInvocationInterlockARB();
}
//~ main: racy; mended: clean
