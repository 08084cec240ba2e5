// --grid 3
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent buffer Lock { uint next_ticket; uint now_serving; };
layout(std430, binding = 1) buffer Shared { uint sum; uint history[]; };
void main() {
    uint my = atomicAdd(next_ticket, 1u);
    while (atomicAdd(now_serving, 0u) != my) { }
    memoryBarrierBuffer();
    uint old = sum; //~ race with 11
    sum = old + gl_WorkGroupID.x; //~ unpublished-read with 10; fix: declare `Shared` coherent
    history[my] = old;
    memoryBarrierBuffer();
    atomicAdd(now_serving, 1u);
}
//~ main: racy; mended: clean in the orders tried
