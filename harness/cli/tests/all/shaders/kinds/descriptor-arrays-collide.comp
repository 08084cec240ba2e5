// --inputs auto
#version 450
// Both arrays name one buffer at their element 1.
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Words { uint words[]; } words[4];
layout(std430, binding = 0) buffer Vectors { uvec4 vectors[]; } vectors[2];
layout(std430, binding = 0) buffer First { uint first[]; };
layout(std430, binding = 1) buffer Result { uint result[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    words[1].words[i] = i;
    result[i] = vectors[1].vectors[i].x + first[i]; //~ race with 12, without a fix
}
//~ main: racy
