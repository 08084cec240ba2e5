// --grid 2,2,3
// Clean: fragments of a pixel blend one after the other, in the order of their primitives.
#version 450
#extension GL_ARB_fragment_shader_interlock : require
layout(pixel_interlock_ordered) in;
layout(binding = 0) coherent buffer Pixels { uint pixels[]; };
void main() {
    uint at = uint(gl_FragCoord.y) * 2 + uint(gl_FragCoord.x);
    beginInvocationInterlockARB();
    pixels[at] = pixels[at] * 3 + gl_PrimitiveID;
    endInvocationInterlockARB();
}
//~ main: clean
