RWStructuredBuffer<uint> B : register(u0);
RWStructuredBuffer<uint> O : register(u1);
RWTexture1D<uint> T : register(u2);
[numthreads(8, 1, 1)]
void main(uint t : SV_GroupIndex, uint3 g : SV_GroupID) {
  T[t] = t;
  DeviceMemoryBarrierWithGroupSync();
  O[t] = T[7 - t];
}
