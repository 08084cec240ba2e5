// --grid 1 --subgroup-size 2
#version 450
layout(local_size_x = 2) in;
layout(set = 0, binding = 0) coherent buffer O { uint lock; uint c; };
// The edit of the race changes the line of the hang, which remains.
void main() { while (atomicCompSwap(lock, 0, 1) != 0); c += 1; memoryBarrierBuffer(); atomicExchange(lock, 0); }
