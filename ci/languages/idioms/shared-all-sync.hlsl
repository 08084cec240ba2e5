RWStructuredBuffer<uint> B : register(u0);
RWStructuredBuffer<uint> O : register(u1);
groupshared uint S[8];
[numthreads(8, 1, 1)]
void main(uint t : SV_GroupIndex, uint3 g : SV_GroupID) {
  S[t] = t;
  AllMemoryBarrierWithGroupSync();
  O[t] = S[7 - t];
}
