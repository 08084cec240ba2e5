// --grid 1
// Nobody sets the flag, and turns are counted that nobody asks for.
#version 460
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent buffer Flags { uint flags[]; };

void main() {
    uint turns = 0u;
    while (atomicAdd(flags[5], 0u) == 0u) turns++; //~ hang, without a fix
    flags[gl_WorkGroupID.x] = 1u;
}
//~ main: racy
