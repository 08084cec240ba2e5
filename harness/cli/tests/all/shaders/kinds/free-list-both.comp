// --grid 2
// Racy: an index is given back where another takes.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) coherent buffer Dead { int count; uint list[64]; };
void main() {
    if ((gl_LocalInvocationID.x & 1u) == 0u) {
        int at = atomicAdd(count, 1);
        list[at] = gl_GlobalInvocationID.x; //~ race with 12, without a fix; race, without a fix
    } else {
        int at = atomicAdd(count, -1);
        if (at > 0) list[at - 1] += 1u; else atomicAdd(count, 1);
    }
}
//~ main: racy
