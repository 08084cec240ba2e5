globallycoherent RWStructuredBuffer<uint> F : register(u0);
RWStructuredBuffer<uint> B : register(u1);
RWStructuredBuffer<int> O : register(u2);
[numthreads(1,1,1)]
void main(uint3 g : SV_GroupID) {
  uint s;
  if (g.x == 0) { InterlockedAdd(F[0], 0, s); B[0] = 42; DeviceMemoryBarrier(); InterlockedExchange(F[0], 1, s); }
  else { InterlockedAdd(F[0], 0, s); DeviceMemoryBarrier(); if (s == 1) O[0] = B[0]; }
}
