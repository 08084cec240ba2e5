// --grid 2,1,2
// fix: use `imageAtomicAdd` instead of this load and store
// The fragments of each pixel, counted without an atomic.
#version 450
layout(binding = 0, r32ui) uniform uimage2D fragments;
void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    imageStore(fragments, at, imageLoad(fragments, at) + 1);
}
