// --grid 1
// The turns are shown once in a while, where the loop looks: it ends.
#version 460
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent buffer Flags { uint flags[]; };

void main() {
    uint turns = 0u;
    while (atomicAdd(flags[5], 0u) == 0u) {
        turns++;
        flags[5] = turns >> 12;
    }
    flags[gl_WorkGroupID.x] = 1u;
}
//~ main: clean
