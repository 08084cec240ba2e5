// --grid 3
// Hang: whoever finds the list full keeps the lock.
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer L { uint lock; };
layout(binding = 1) coherent buffer D { uint sum; uint list[]; };
void main() {
    while (atomicCompSwap(lock, 0u, 1u) != 0u) {} //~ hang, without a fix
    memoryBarrierBuffer();
    if (sum > 0u) return;
    list[sum] = gl_WorkGroupID.x;
    sum = sum + 1u;
    memoryBarrierBuffer();
    atomicExchange(lock, 0u);
}
//~ main: racy
