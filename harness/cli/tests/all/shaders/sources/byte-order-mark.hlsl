RWStructuredBuffer<uint> ranks;
[numthreads(16, 1, 1)]
void Rank(uint3 id : SV_DispatchThreadID) { ranks[id.x] = id.x; }
