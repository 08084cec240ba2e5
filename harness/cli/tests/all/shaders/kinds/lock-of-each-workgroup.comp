// --inputs auto
// The only invocation of a workgroup waits for other workgroups, so there are two without a grid.
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) coherent buffer Data { uint lock; uint count; };
void main() {
    while (atomicCompSwap(lock, 0u, 1u) != 0u) { } //~ fix: put `memoryBarrierBuffer();` after this atomic
    count = count + 1; //~ race
    memoryBarrierBuffer();
    atomicExchange(lock, 0u);
}
//~ main: racy; mended: clean
