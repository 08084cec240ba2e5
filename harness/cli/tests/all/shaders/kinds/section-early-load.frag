// --grid 2,1,2
// Racy: what the section stores was loaded before it.
#version 450
#extension GL_ARB_fragment_shader_interlock : require
layout(pixel_interlock_ordered) in;
layout(binding = 0) coherent buffer Pixels { uint pixels[]; };
void main() {
    uint at = uint(gl_FragCoord.y) * 2 + uint(gl_FragCoord.x);
    uint before = pixels[at];
    beginInvocationInterlockARB();
    pixels[at] = before * 3 + gl_PrimitiveID; //~ race with 9, without a fix
    endInvocationInterlockARB();
}
//~ main: racy
