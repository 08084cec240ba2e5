// --inputs auto
// Needs inputs: fragments of one pixel race on its head, if a draw has several.
#version 450
layout(binding = 0, r32ui) uniform uimage2D heads;
layout(binding = 1) buffer Nodes { uint count; uint bound; uint next[]; };
void main() {
    uint node = atomicAdd(count, 1);
    if (node >= bound) return;
    next[node] = imageLoad(heads, ivec2(gl_FragCoord.xy)).x;
    imageStore(heads, ivec2(gl_FragCoord.xy), uvec4(node));
}
//~ main: needs-inputs
