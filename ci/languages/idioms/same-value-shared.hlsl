RWStructuredBuffer<uint> B : register(u0);
RWStructuredBuffer<uint> O : register(u1);
groupshared uint S;
[numthreads(8, 1, 1)]
void main(uint t : SV_GroupIndex, uint3 g : SV_GroupID) {
  S = 1;
  GroupMemoryBarrierWithGroupSync();
  O[t] = S;
}
