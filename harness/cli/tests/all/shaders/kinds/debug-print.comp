// --grid 2 --buffer 0.0=zeros:40
// Clean: room is asked for before it is written.
#version 450
layout(local_size_x = 2) in;
layout(binding = 0) buffer B { uint used; uint words[]; };
void main() {
    uint at = atomicAdd(used, 3u);
    if (at + 3u <= uint(words.length())) {
        words[at] = 2u;
        words[at + 1u] = gl_GlobalInvocationID.x;
        words[at + 2u] = 7u;
    }
}
//~ main: clean
