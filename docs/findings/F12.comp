#version 460
layout(local_size_x = 8) in;
layout(set = 0, binding = 0) coherent buffer B { uint data, flag; };
void main() {
  if (gl_LocalInvocationIndex == 0) {
    data = 1;
    memoryBarrierBuffer();
    atomicExchange(flag, 1);
  }
}
