// --grid 2 --buffer 0.0=random:256
// Racy: bits of one word by plain reads and writes.
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) buffer B { uint bits[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if ((x[i] & 1u) != 0u) bits[i >> 5] |= 1u << (i & 31u); //~ race; fix: use `atomicOr` instead of this load and store
}
//~ main: racy; mended: clean
