#version 460
layout(local_size_x = 8) in;
layout(set = 0, binding = 0)  buffer BB { uint b[8]; };
layout(set = 0, binding = 1) buffer OB { uint o[8]; };
void main() {
  uint t = gl_LocalInvocationIndex;
  b[t] = t;
  memoryBarrierBuffer(); barrier(); memoryBarrierBuffer();
  o[t] = b[7u - t];
}
