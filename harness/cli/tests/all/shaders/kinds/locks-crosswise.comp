// --grid 2
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) coherent buffer Data { uint a; uint b; uint n; };
void main() {
    if (gl_LocalInvocationIndex != 0) return;
    if (gl_WorkGroupID.x == 0) {
        while (atomicCompSwap(a, 0, 1) != 0);
        while (atomicCompSwap(b, 0, 1) != 0); //~ hang with 11, without a fix
    } else {
        while (atomicCompSwap(b, 0, 1) != 0);
        while (atomicCompSwap(a, 0, 1) != 0);
    }
    memoryBarrierBuffer();
    n++;
    memoryBarrierBuffer();
    atomicExchange(b, 0);
    atomicExchange(a, 0);
}
//~ main: racy
