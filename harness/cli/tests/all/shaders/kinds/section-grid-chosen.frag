// --inputs auto
// Racy: a section is for several fragments of a pixel, and the store is after its end.
#version 450
#extension GL_ARB_fragment_shader_interlock : require
layout(pixel_interlock_ordered) in;
layout(binding = 0, r32ui) uniform coherent uimage2D counts;
void main() {
    ivec2 pixel = ivec2(gl_FragCoord.xy);
    beginInvocationInterlockARB();
    uint count = imageLoad(counts, pixel).x;
    endInvocationInterlockARB();
    imageStore(counts, pixel, uvec4(count + 1u)); //~ race with 10, without a fix; race, without a fix
}
//~ main: racy
