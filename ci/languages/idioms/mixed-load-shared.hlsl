RWStructuredBuffer<uint> B : register(u0);
RWStructuredBuffer<uint> O : register(u1);
groupshared uint S;
[numthreads(8, 1, 1)]
void main(uint t : SV_GroupIndex, uint3 g : SV_GroupID) {
  if (t == 0) S = 0;
  GroupMemoryBarrierWithGroupSync();
  uint old;
  InterlockedAdd(S, 1, old);
  O[t] = S;
}
