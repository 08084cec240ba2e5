// --grid 3 --subgroup-size 4
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) coherent buffer Data { uint lock; uint count; };
void main() {
    if (gl_LocalInvocationIndex == 0) {
        while (atomicCompSwap(lock, 0u, 1u) != 0u) { }
        memoryBarrierBuffer();
        count += 1;
        memoryBarrierBuffer();
        atomicExchange(lock, 0u);
    }
}
//~ main: clean
