RWStructuredBuffer<uint> B : register(u0);
RWStructuredBuffer<uint> O : register(u1);
[numthreads(8, 1, 1)]
void main(uint t : SV_GroupIndex, uint3 g : SV_GroupID) {
  uint old;
  if (t == 0) B[0] = 5; else InterlockedAdd(B[0], 1, old);
}
