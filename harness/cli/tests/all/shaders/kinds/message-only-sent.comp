// --grid 2
// Racy: the writer releases, and the reader does not acquire.
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent buffer Mail { uint data; uint flag; uint seen; };
void main() {
    if (gl_WorkGroupID.x == 0u) {
        data = 42u; //~ race with 13
        memoryBarrierBuffer();
        atomicExchange(flag, 1u);
    } else {
        uint got = atomicOr(flag, 0u); //~ fix: put `memoryBarrierBuffer();` after this atomic
        if (got == 1u) seen = data;
    }
}
//~ main: racy; mended: clean
