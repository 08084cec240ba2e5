// --grid 3 --timeout 2s
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent buffer Lock { uint next_ticket; uint now_serving; };
layout(std430, binding = 1) coherent buffer Shared { uint sum; uint history[]; };
void main() {
    uint my = atomicAdd(next_ticket, 1u);
    while (atomicAdd(now_serving, 0u) != my) { }
    memoryBarrierBuffer();
    uint old = sum;
    sum = old + gl_WorkGroupID.x;
    history[my] = old;
    memoryBarrierBuffer();
    atomicAdd(now_serving, 1u);
}
//~ main: clean in the orders tried
