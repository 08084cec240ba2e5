#version 450
// expect: needs-inputs
// Every choice of keys that was tried has two that are equal.
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Keys { uint keys[]; };
layout(std430, binding = 1) buffer Slots { uint slots[16]; };
void main() {
    slots[keys[gl_GlobalInvocationID.x] & 15u] = 1u + gl_GlobalInvocationID.x;
}
