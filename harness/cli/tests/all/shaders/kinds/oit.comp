// --grid 2,2 --image 0.0=4x4 --push 0=64
// Clean: per-pixel lists by image exchange, nodes are own.
#version 450
layout(local_size_x = 4, local_size_y = 4) in;
layout(push_constant) uniform P { uint room; };
layout(binding = 0, r32ui) uniform coherent uimage2D heads;
layout(std430, binding = 1) buffer Nodes { uint count; uint pad; uvec2 node[]; };
void main() {
    uint n = atomicAdd(count, 1u) + 1u;
    if (n > room) return;
    uint old = imageAtomicExchange(heads, ivec2(gl_LocalInvocationID.xy), n);
    node[n] = uvec2(old, gl_LocalInvocationIndex);
}
//~ main: clean in the orders tried
