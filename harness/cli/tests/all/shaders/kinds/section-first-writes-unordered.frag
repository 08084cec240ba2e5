// --grid 2,1,2
// Racy: the same without an order of primitives: another fragment may come first.
#version 450
#extension GL_ARB_fragment_shader_interlock : require
layout(pixel_interlock_unordered) in;
layout(binding = 0) coherent buffer Pixels { uint pixels[]; };
layout(location = 0) out uint colour;
void main() {
    uint at = uint(gl_FragCoord.x);
    if (gl_PrimitiveID == 0) {
        pixels[at] = 7;
    }
    beginInvocationInterlockARB();
    endInvocationInterlockARB();
    colour = pixels[at]; //~ race with 11, without a fix
}
//~ main: racy
