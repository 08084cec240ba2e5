#version 450
// A structure with an array member.
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer B0 { uint data[]; };
struct Block { uint parts[2]; uvec2 place; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    Block one = Block(uint[2](data[i], 5u), uvec2(i, 2u));
    one.parts[1] += one.place.x;
    data[i] = one.parts[0] * one.parts[1] + one.place.y;
}
