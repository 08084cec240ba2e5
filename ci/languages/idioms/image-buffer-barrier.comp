#version 460
layout(local_size_x = 8) in;
layout(set = 0, binding = 0)  buffer BB { uint b[8]; };
layout(set = 0, binding = 1) buffer OB { uint o[8]; };
layout(set = 0, binding = 2, r32ui) coherent uniform uimage1D im;
void main() {
  uint t = gl_LocalInvocationIndex;
  imageStore(im, int(t), uvec4(t));
  memoryBarrierBuffer(); barrier();
  o[t] = imageLoad(im, int(7u - t)).x;
}
