// --grid 2,1,2
// Clean in the orders tried: each fragment adds to its pixel alone, and which comes first is open.
#version 450
#extension GL_ARB_fragment_shader_interlock : require
layout(pixel_interlock_unordered) in;
layout(binding = 0) coherent buffer Pixels { uint pixels[]; };
void main() {
    uint at = uint(gl_FragCoord.y) * 2 + uint(gl_FragCoord.x);
    beginInvocationInterlockARB();
    pixels[at] = pixels[at] * 3 + gl_PrimitiveID;
    endInvocationInterlockARB();
}
//~ main: clean
