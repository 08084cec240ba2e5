globallycoherent RWStructuredBuffer<uint> B : register(u0);
RWStructuredBuffer<uint> O : register(u1);
RWStructuredBuffer<uint> F : register(u2);
[numthreads(1, 1, 1)]
void main(uint t : SV_GroupIndex, uint3 g : SV_GroupID) {
  if (g.x == 0) { B[0] = 42; DeviceMemoryBarrier(); uint d; InterlockedExchange(F[0], 1, d); }
  else { uint r; InterlockedAdd(F[0], 0, r); DeviceMemoryBarrier(); if (r == 1) O[0] = B[0]; }
}
