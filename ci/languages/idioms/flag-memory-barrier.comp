#version 460
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) coherent buffer BB { uint b[8]; };
layout(set = 0, binding = 1) buffer OB { uint o[8]; };
layout(set = 0, binding = 2) buffer FB { uint f; };
void main() {
  uint t = gl_LocalInvocationIndex;
  if (gl_WorkGroupID.x == 0u) { b[0] = 42u; memoryBarrierBuffer(); atomicExchange(f, 1u); }
  else if (atomicAdd(f, 0u) == 1u) { memoryBarrierBuffer(); o[0] = b[0]; }
}
