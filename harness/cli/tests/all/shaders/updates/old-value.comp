// --grid 2
// fix: use `atomicAdd` instead of this load and store
// The value before the addition is used too.
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) buffer Count { uint count; uint unused; };
layout(binding = 1) buffer Out { uint slots[64]; };
void main() {
    slots[gl_GlobalInvocationID.x] = count++;
}
