#version 450
// args: --grid 2 --assert count==4
// expect: hang
// A schedule in which invocations loop forever has no final contents.
layout(local_size_x = 2) in;
layout(std430, binding = 0) buffer Lock { uint lock; };
layout(std430, binding = 1) coherent buffer Data { uint count; };
void main() {
    bool is_done = false;
    while (!is_done) {
        if (atomicCompSwap(lock, 0u, 1u) == 0u) {
            memoryBarrierBuffer();
            count = count + 1u;
            memoryBarrierBuffer();
            atomicExchange(lock, 0u);
            is_done = true;
        }
    }
}
