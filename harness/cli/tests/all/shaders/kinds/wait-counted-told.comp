// --grid 1
// Nobody sets the flag, and how many turns it took is told behind the loop.
#version 460
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent buffer Flags { uint flags[]; };

void main() {
    uint turns = 0u;
    while (atomicAdd(flags[5], 0u) == 0u) { //~ hang, without a fix
        turns++;
    }
    flags[gl_WorkGroupID.x] = turns;
}
//~ main: racy
