// --grid 2 --image 0.0=4x4
// Racy: a texel is handed over with a flag in a buffer, without an order.
#version 450
layout(local_size_x = 1) in;
layout(binding = 0, r32ui) coherent uniform uimage2D picture;
layout(std430, binding = 1) coherent buffer Mail { uint flag; uint seen; };
void main() {
    if (gl_WorkGroupID.x == 0u) {
        imageStore(picture, ivec2(1, 2), uvec4(42u)); //~ race with 13
        atomicExchange(flag, 1u); //~ fix: put `memoryBarrier();` before this atomic
    } else {
        uint got = atomicOr(flag, 0u); //~ fix: put `memoryBarrier();` after this atomic
        if (got == 1u) seen = imageLoad(picture, ivec2(1, 2)).x;
    }
}
//~ main: racy; mended: clean
