// --grid 2 --buffer 0.0=zeros:36
// Out of bounds: one word too late.
#version 450
layout(local_size_x = 2) in;
layout(binding = 0) buffer B { uint used; uint words[]; };
void main() {
    uint at = atomicAdd(used, 3u);
    if (at < uint(words.length())) {
        words[at] = 2u;
        words[at + 1u] = gl_GlobalInvocationID.x;
        words[at + 2u] = 7u; //~ out-of-bounds, without a fix
    }
}
//~ main: racy
