// --grid 1 --subgroup-size 4
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) coherent buffer Data { uint lock; uint count; };
void main() {
    while (atomicCompSwap(lock, 0u, 1u) != 0u) { } //~ hang, without a fix
    memoryBarrierBuffer();
    count += 1;
    memoryBarrierBuffer();
    atomicExchange(lock, 0u);
}
//~ main: racy
