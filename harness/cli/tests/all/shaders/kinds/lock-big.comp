// --grid 16 --subgroup-size 32
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) coherent buffer Data { uint lock; uint count; };
void acquire() { while (atomicCompSwap(lock, 0u, 1u) != 0u) { } memoryBarrierBuffer(); } //~ hang, without a fix
void release() { memoryBarrierBuffer(); atomicExchange(lock, 0u); }
void main() {
    acquire();
    count += 1;
    release();
}
//~ main: racy
