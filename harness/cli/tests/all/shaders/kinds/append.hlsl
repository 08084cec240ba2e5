// --grid 2
AppendStructuredBuffer<uint2> outp : register(u0);
ConsumeStructuredBuffer<uint2> inp : register(u1);
RWStructuredBuffer<uint> counts : register(u2);
cbuffer C : register(b3) { uint n; float4x4 m; };
groupshared float4 tile[8][8];
[numthreads(8, 8, 1)]
void main(uint3 id : SV_DispatchThreadID, uint3 t : SV_GroupThreadID, uint gi : SV_GroupIndex) {
  tile[t.y][t.x] = mul(m, float4(id, 1));
  GroupMemoryBarrierWithGroupSync();
  uint2 c = inp.Consume();
  if (tile[t.x][t.y].x >= 0) outp.Append(c);
  uint old; InterlockedCompareExchange(counts[gi % 4], 0, 1, old);
}
//~ main: clean in the orders tried
