// --grid 2 --buffer 0.0=random:256
// Racy: the index is written beside the maximum.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) buffer B { uint best; uint index; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint old = atomicMax(best, x[i]);
    if (x[i] > old) index = i; //~ race; fix: use `atomicExchange` for this store, which several invocations may make
}
//~ main: racy; mended: clean
