// --grid 2,1,2
// Clean: what the first primitive writes before its section is there for all behind theirs.
#version 450
#extension GL_ARB_fragment_shader_interlock : require
layout(pixel_interlock_ordered) in;
layout(binding = 0) coherent buffer Pixels { uint pixels[]; };
layout(location = 0) out uint colour;
void main() {
    uint at = uint(gl_FragCoord.x);
    if (gl_PrimitiveID == 0) {
        pixels[at] = 7;
    }
    beginInvocationInterlockARB();
    endInvocationInterlockARB();
    colour = pixels[at];
}
//~ main: clean
