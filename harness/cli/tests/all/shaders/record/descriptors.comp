#version 450
#extension GL_EXT_nonuniform_qualifier : require
#extension GL_EXT_buffer_reference_uvec2 : require
// The contents of binding 0 decide whether the stores to binding 1 race. MODE is the kind of the descriptor.
layout(local_size_x = 8) in;
layout(set = 0, binding = 1) buffer To { uint to[]; };
#if MODE == 0
layout(set = 0, binding = 0) readonly buffer From { uint from[]; };
uint index_of(uint i) { return from[i]; }
#elif MODE == 1
layout(set = 0, binding = 0) readonly buffer From { uint from[]; } all[3];
uint index_of(uint i) { return all[2].from[i]; }
#elif MODE == 2
layout(set = 0, binding = 0) readonly buffer From { uint from[]; } all[];
layout(set = 0, binding = 2) uniform Chosen { uint chosen; };
uint index_of(uint i) { return all[chosen].from[i]; }
#elif MODE == 3
layout(set = 0, binding = 0) uniform usamplerBuffer from;
uint index_of(uint i) { return texelFetch(from, int(i)).x; }
#elif MODE == 4
layout(set = 0, binding = 0, r32ui) uniform readonly uimageBuffer from;
uint index_of(uint i) { return imageLoad(from, int(i)).x; }
#elif MODE == 5
layout(set = 0, binding = 0) uniform From { uvec4 from[2]; };
uint index_of(uint i) { return from[i / 4][i % 4]; }
#elif MODE == 6
layout(set = 0, binding = 0, r32ui) uniform readonly uimage2D from[2];
uint index_of(uint i) { return imageLoad(from[1], ivec2(i, 0)).x; }
#elif MODE == 9
layout(set = 0, binding = 0) readonly buffer From { uint from[]; };
uint index_of(uint i) { return i + from[from[i]]; }
#elif MODE == 7 || MODE == 8
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Behind { uint from[]; };
layout(set = 0, binding = 2) uniform Chosen { uvec2 address; };
#if MODE == 8
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Node { uvec2 next; };
uint index_of(uint i) { return Behind(Node(address).next).from[i]; }
#else
uint index_of(uint i) { return Behind(address).from[i]; }
#endif
#endif
void main() {
    uint i = gl_LocalInvocationIndex;
    to[index_of(i)] = i;
}
