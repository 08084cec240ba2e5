// --grid 1 --subgroup-size 4
// Hang: lanes of one subgroup, of which nobody promises that the one with the lock goes on.
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer L { uint lock; };
layout(binding = 1) coherent buffer D { uint sum; };
void main() {
    bool done = false;
    while (!done) { //~ hang with 10, without a fix
        if (atomicCompSwap(lock, 0u, 1u) == 0u) {
            memoryBarrierBuffer();
            sum = sum + 1u;
            memoryBarrierBuffer();
            atomicExchange(lock, 0u);
            done = true;
        }
    }
}
//~ main: racy
