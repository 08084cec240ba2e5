// --grid 1
#version 450
// An exchange initializes memory, so that later atomics depend on no undefined value.
layout(local_size_x = 8) in;
layout(binding = 0) buffer Data { uint values[]; };
shared uint count;
void main() {
    if (gl_LocalInvocationIndex == 0) atomicExchange(count, 7u);
    barrier();
    atomicAdd(count, 1u);
    barrier();
    values[gl_LocalInvocationIndex] = count;
}
//~ main: clean
