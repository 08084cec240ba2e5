// --grid 1
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };
shared uint hist[16];
void main() {
    atomicAdd(hist[data[gl_LocalInvocationIndex] & 15u], 1);
    barrier();
    if (gl_LocalInvocationIndex < 16)
        data[gl_LocalInvocationIndex] = hist[gl_LocalInvocationIndex];
}
