#version 450
// expect: clean
// The end of a list is in its contents: all bits set.
layout(local_size_x = 16) in;
layout(std430, binding = 0) readonly buffer Links { uint links[]; };
layout(std430, binding = 1) buffer Lengths { uint lengths[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint length = 0;
    for (uint at = i; at != 0xffffffffu; at = links[at]) length++;
    lengths[i] = length;
}
