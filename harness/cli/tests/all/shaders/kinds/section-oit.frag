// --grid 2,1,3 --image 0.0=2x1x4,fill=random
// Clean: the four nearest of each pixel, kept in order by insertion, as engines do for transparency without a list.
#version 450
#extension GL_ARB_fragment_shader_interlock : require
layout(pixel_interlock_unordered) in;
layout(binding = 0, r32ui) uniform coherent uimage2DArray nearest;
void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    uint mine = uint(gl_PrimitiveID) * 7 % 5;
    beginInvocationInterlockARB();
    for (int layer = 0; layer < 4; layer++) {
        uint there = imageLoad(nearest, ivec3(at, layer)).x;
        if (mine < there) {
            imageStore(nearest, ivec3(at, layer), uvec4(mine));
            mine = there;
        }
    }
    endInvocationInterlockARB();
}
//~ main: clean in the orders tried
