// --grid 2,1,2
// Racy: a section keeps the fragments of its own pixel apart, and this touches the one beside it.
#version 450
#extension GL_ARB_fragment_shader_interlock : require
layout(pixel_interlock_ordered) in;
layout(binding = 0) coherent buffer Pixels { uint pixels[]; };
void main() {
    uint at = uint(gl_FragCoord.y) * 2 + uint(gl_FragCoord.x);
    beginInvocationInterlockARB();
    pixels[at] = pixels[at ^ 1] + 1; //~ race, without a fix
    endInvocationInterlockARB();
}
//~ main: racy
