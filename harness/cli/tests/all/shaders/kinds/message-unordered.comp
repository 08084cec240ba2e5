// --grid 2
// Racy: the flag is atomic, and nothing releases the data or acquires it.
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent buffer Mail { uint data; uint flag; uint seen; };
void main() {
    if (gl_WorkGroupID.x == 0u) {
        data = 42u; //~ race with 12
        atomicExchange(flag, 1u); //~ fix: put `memoryBarrierBuffer();` before this atomic
    } else {
        uint got = atomicOr(flag, 0u); //~ fix: put `memoryBarrierBuffer();` after this atomic
        if (got == 1u) seen = data;
    }
}
//~ main: racy; mended: clean
