// --grid 3
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent buffer Lock { uint next_ticket; uint now_serving; };
layout(std430, binding = 1) coherent buffer Shared { uint sum; uint history[]; };
void main() {
    uint my = atomicAdd(next_ticket, 1u);
    while (atomicAdd(now_serving, 0u) != my) { } //~ fix: put `memoryBarrierBuffer();` after this atomic
    uint old = sum;
    sum = old + gl_WorkGroupID.x; //~ race with 9
    history[my] = old;
    atomicAdd(now_serving, 1u); //~ fix: put `memoryBarrierBuffer();` before this atomic
}
//~ main: racy; mended: clean in the orders tried
