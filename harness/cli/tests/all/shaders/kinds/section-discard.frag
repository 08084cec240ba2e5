// --grid 2,1,3
// Clean: who is discarded before its section keeps nobody waiting.
#version 450
#extension GL_ARB_fragment_shader_interlock : require
layout(pixel_interlock_ordered) in;
layout(binding = 0) coherent buffer Pixels { uint pixels[]; };
void main() {
    uint at = uint(gl_FragCoord.x);
    if (gl_PrimitiveID == 1) {
        discard;
    }
    beginInvocationInterlockARB();
    pixels[at] += 1 + gl_PrimitiveID;
    endInvocationInterlockARB();
}
//~ main: clean
