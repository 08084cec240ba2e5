// --grid 2,1,2
// Clean: the same by samples, of which a pixel has one.
#version 450
#extension GL_ARB_fragment_shader_interlock : require
layout(sample_interlock_ordered) in;
layout(binding = 0) coherent buffer Pixels { uint pixels[]; };
void main() {
    uint at = uint(gl_FragCoord.y) * 2 + uint(gl_FragCoord.x);
    beginInvocationInterlockARB();
    pixels[at] = pixels[at] * 3 + gl_PrimitiveID;
    endInvocationInterlockARB();
}
//~ main: clean
