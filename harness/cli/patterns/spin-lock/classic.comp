#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) coherent buffer Lock { uint taken; } lock;
layout(set = 0, binding = 1) coherent buffer Data { uint count; } data;

void main() {
    while (atomicCompSwap(lock.taken, 0u, 1u) != 0u) {
    }
    memoryBarrierBuffer();
    data.count = data.count + 1;
    memoryBarrierBuffer();
    atomicExchange(lock.taken, 0u);
}
