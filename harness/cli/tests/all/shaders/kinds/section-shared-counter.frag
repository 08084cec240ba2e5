// --grid 2,1,2 --image 0.0=2x1
// Racy: a depth buffer of one's own in a section, and a plain counter of all pixels beside it.
#version 450
#extension GL_ARB_fragment_shader_interlock : require
layout(pixel_interlock_ordered) in;
layout(binding = 0, r32ui) uniform coherent uimage2D depths;
layout(binding = 1) coherent buffer Count { uint passed; };
void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    beginInvocationInterlockARB();
    if (imageLoad(depths, at).x <= uint(gl_PrimitiveID)) {
        imageStore(depths, at, uvec4(gl_PrimitiveID + 1));
        passed++; //~ race; fix: use `atomicAdd` instead of this load and store
    }
    endInvocationInterlockARB();
}
//~ main: racy; mended: clean
