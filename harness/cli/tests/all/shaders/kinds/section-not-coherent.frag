// --grid 2,1,2
// Racy: a section orders, and makes nothing available or visible: that the accesses do.
#version 450
#extension GL_ARB_fragment_shader_interlock : require
layout(pixel_interlock_ordered) in;
layout(binding = 0) buffer Pixels { uint pixels[]; };
void main() {
    uint at = uint(gl_FragCoord.y) * 2 + uint(gl_FragCoord.x);
    beginInvocationInterlockARB();
    pixels[at] = pixels[at] * 3 + gl_PrimitiveID; //~ race; unpublished-read; fix: declare `Pixels` coherent
    endInvocationInterlockARB();
}
//~ main: racy; mended: clean
