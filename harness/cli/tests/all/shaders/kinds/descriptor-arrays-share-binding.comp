// --inputs auto
#version 450
// Arrays of descriptors at one binding are the same buffers, whatever their types and lengths.
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Words { uint words[]; } words[4];
layout(std430, binding = 0) buffer Vectors { uvec4 vectors[]; } vectors[2];
layout(std430, binding = 0) buffer First { uint first[]; };
layout(std430, binding = 1) buffer Result { uint result[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    words[2].words[i] = i;
    result[i] = vectors[1].vectors[i].x + first[i];
}
//~ main: clean
