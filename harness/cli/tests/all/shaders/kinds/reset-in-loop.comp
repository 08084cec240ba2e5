// --grid 1 --buffer 0.0=random:256
// Racy: the counter is reset beside the reads of the last round.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer I { uint x[]; };
layout(binding = 1) writeonly buffer O { uint o[]; };
shared uint n;
void main() {
    uint t = gl_LocalInvocationIndex;
    for (uint b = 0; b < 3; b++) {
        if (t == 0) n = 0; //~ race with 15; fix: put `barrier();` before this line
        barrier();
        if ((x[t] >> b & 1u) != 0u) atomicAdd(n, 1u);
        barrier();
        o[b * 8 + t] = n;
    }
}
//~ main: racy; mended: clean
