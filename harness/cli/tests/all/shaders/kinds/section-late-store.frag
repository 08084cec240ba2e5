// --grid 2,1,2
// Racy: the section is too short, and the store behind it.
#version 450
#extension GL_ARB_fragment_shader_interlock : require
layout(pixel_interlock_ordered) in;
layout(binding = 0) coherent buffer Pixels { uint pixels[]; };
void main() {
    uint at = uint(gl_FragCoord.y) * 2 + uint(gl_FragCoord.x);
    beginInvocationInterlockARB();
    uint before = pixels[at];
    endInvocationInterlockARB();
    pixels[at] = before * 3 + gl_PrimitiveID; //~ race with 10, without a fix; race, without a fix
}
//~ main: racy
