// --grid 4 --buffer 0.1=iota:256
// Racy: no barrier between the partial sum and the counter.
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer C { uint done; };
layout(binding = 1) readonly buffer X { uint x[]; };
layout(binding = 2) coherent buffer P { uint part[4]; };
layout(binding = 3) writeonly buffer R { uint result; };
void main() {
    if (gl_LocalInvocationIndex != 0) return;
    part[gl_WorkGroupID.x] = x[gl_WorkGroupID.x]; //~ race with 13
    uint before = atomicAdd(done, 1u); //~ fix: put `memoryBarrierBuffer();` before and after this atomic
    if (before == 3u) result = part[0] + part[1] + part[2] + part[3];
}
//~ main: racy; mended: clean
