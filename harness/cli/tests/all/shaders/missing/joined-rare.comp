#version 450
// expect: needs-inputs
// Chosen contents decide each branch both ways, but not all of them in this pattern.
layout(local_size_x = 4) in;
layout(std430, binding = 0) readonly buffer Keys { uint keys[]; };
layout(std430, binding = 1) buffer Found { uint found[]; };
void main() {
    uint mask = 0u;
    for (uint i = 0u; i < 12u; ++i)
        if ((keys[i] & 4u) != 0u) mask |= 1u << i;
    if (mask == 0x9a5u) found[0] = gl_LocalInvocationID.x;
}
