// --grid 2 --buffer 0.0=iota:72
// Racy: the head is the same again while what is behind it has gone. Free nodes are 1, 3, 5 and 7.
#version 450
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer Stack { uint none; uint head; uint next[8]; uint data[8]; };
#define LOAD(of, how) atomicLoad(of, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_Semantics##how)
#define SWAP(of, from, to) atomicCompSwap(of, from, to, gl_ScopeDevice, gl_StorageSemanticsBuffer, \
    gl_SemanticsAcquireRelease, gl_StorageSemanticsBuffer, gl_SemanticsAcquire)
uint pop() {
    for (;;) {
        uint first = LOAD(head, Acquire);
        if (first > 7u) return 0u;
        uint second = LOAD(next[first], Relaxed);
        if (SWAP(head, first, second) == first) return first;
    }
}
void push(uint node) {
    for (;;) {
        uint first = LOAD(head, Relaxed);
        atomicStore(next[node], first, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelaxed);
        if (SWAP(head, first, node) == first) return;
    }
}
void main() {
    if (gl_WorkGroupID.x == 0u) {
        data[pop()] = 1u;
        data[pop()] = 2u;
    } else {
        uint first = pop(), second = pop();
        push(first);
        data[second] = 3u; //~ race with 29, without a fix
    }
}
//~ main: racy
