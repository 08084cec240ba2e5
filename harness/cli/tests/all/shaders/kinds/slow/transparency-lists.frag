// --grid 3,2,2 --image 0.0=3x2
// Clean: lists of the fragments of each pixel, linked by an exchange, to be walked behind a barrier of the API.
#version 450
layout(early_fragment_tests) in;
layout(binding = 0, r32ui) uniform coherent uimage2D heads;
struct Node { uint next; float depth; vec4 colour; };
layout(binding = 1) buffer Nodes { Node nodes[]; };
layout(binding = 2) buffer Counter { uint taken; };
layout(location = 0) in vec4 colour;
void main() {
    uint mine = atomicAdd(taken, 1);
    if (mine < nodes.length()) {
        nodes[mine].depth = gl_FragCoord.z;
        nodes[mine].colour = colour;
        nodes[mine].next = imageAtomicExchange(heads, ivec2(gl_FragCoord.xy), mine);
    }
}
//~ main: clean in the orders tried
