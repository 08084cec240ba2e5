RWStructuredBuffer<uint> B : register(u0);
RWStructuredBuffer<uint> O : register(u1);
groupshared uint S;
[numthreads(8, 1, 1)]
void main(uint t : SV_GroupIndex, uint3 g : SV_GroupID) {
  uint old;
  if (t == 0) S = 0; else InterlockedAdd(S, 1, old);
}
