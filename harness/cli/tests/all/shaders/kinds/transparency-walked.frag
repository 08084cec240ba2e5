// --grid 2,1,2 --image 0.0=2x1
// Racy: the same lists, walked by the fragments that build them. Primitives come in order, their stores do not.
#version 450
layout(binding = 0, r32ui) uniform coherent uimage2D heads;
struct Node { uint next; float depth; };
layout(binding = 1) buffer Nodes { Node nodes[]; };
layout(binding = 2) buffer Counter { uint taken; };
layout(location = 0) out vec4 colour;
void main() {
    uint mine = 1 + atomicAdd(taken, 1);
    nodes[mine].depth = gl_FragCoord.z; //~ race with 16; fix: declare `Nodes` coherent
    uint next = imageAtomicExchange(heads, ivec2(gl_FragCoord.xy), mine); //~ fix: put `memoryBarrier();` after this atomic; fix: put `memoryBarrier();` before this atomic
    nodes[mine].next = next; //~ race with 15, without a fix
    float nearest = nodes[mine].depth;
    for (uint at = next, steps = 0; at != 0 && steps < 4; at = nodes[at].next, steps++) {
        nearest = min(nearest, nodes[at].depth);
    }
    colour = vec4(nearest);
}
//~ main: racy
