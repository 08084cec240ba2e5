#version 450
// Modes: 0 copies words, 1 writes an image, 2 reads a sampled image, 3 reads a uniform buffer, 4 writes the arguments of a draw, 5 counts.
layout(local_size_x = 4, local_size_y = 4) in;
#if MODE == 0 || MODE == 5
layout(set = 0, binding = 0) readonly buffer From { uint from[]; };
#elif MODE == 1
layout(set = 0, binding = 1, r32ui) writeonly uniform uimage2D target;
#elif MODE == 2
layout(set = 0, binding = 2) uniform sampler2D source;
#elif MODE == 3
layout(set = 0, binding = 3) uniform Numbers { uvec4 numbers[4]; };
#endif
#if MODE != 1
layout(set = 0, binding = 4) buffer To { uint to[]; };
#endif
void main() {
    uint i = gl_LocalInvocationIndex;
#if MODE == 0
    to[i] = from[i] + 1;
#elif MODE == 1
    imageStore(target, ivec2(gl_LocalInvocationID), uvec4(i));
#elif MODE == 2
    to[i] = uint(255 * texelFetch(source, ivec2(gl_LocalInvocationID), 0).x);
#elif MODE == 3
    to[i] = numbers[i / 4][i % 4];
#elif MODE == 5
    atomicAdd(to[from[i] & 15], 1);
#else
    if (i < 4) to[i] = i == 0 ? 3 : i == 1 ? 1 : 0;
#endif
}
