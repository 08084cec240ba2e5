// --grid 2
// Racy: neither is the flag atomic, nor is the data handed over with it.
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer Mail { uint data; uint flag; uint seen; };
void main() {
    if (gl_WorkGroupID.x == 0u) {
        data = 42u; //~ race with 12; fix: declare `Mail` coherent; fix: put `memoryBarrierBuffer();` before this atomic
        flag = 1u; //~ race with 11; fix: make this access atomic (it remains unordered)
    } else { //~ fix: put `memoryBarrierBuffer();` after this atomic
        uint got = flag; //~ fix: make this access atomic (it remains unordered)
        if (got == 1u) seen = data;
    }
}
//~ main: racy; mended: clean
