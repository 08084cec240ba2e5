// --grid 2 --buffer 0.0=iota:1024
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint found; uint value[]; };
void main() {
    // All write the same.
    if (value[gl_GlobalInvocationID.x] > 10) found = 1; //~ race; fix: use `atomicExchange` for this store, which several invocations may make
}
//~ main: racy; mended: clean
