// --grid 1
#version 450
// Without a barrier, the addition may precede the exchange.
layout(local_size_x = 2) in;
layout(binding = 0) buffer Data { uint values[]; };
shared uint count;
void main() {
    if (gl_LocalInvocationIndex == 0) atomicExchange(count, 7u); //~ fix: clear `count` before this line, and wait: `barrier();`
    else atomicAdd(count, 1u); //~ uninitialised-read
    barrier();
    values[gl_LocalInvocationIndex] = count;
}
//~ main: racy; mended: clean
