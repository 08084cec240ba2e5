//
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) buffer Data { uint values[]; };
shared uint count;
void main() {
    atomicAdd(count, 1u); //~ uninitialised-read; fix: clear `count` before this line, and wait: `barrier();`
    barrier();
    if (count == 8u) values[gl_LocalInvocationIndex] = 1; //~ uninitialised-read
}
//~ main: racy; mended: clean
