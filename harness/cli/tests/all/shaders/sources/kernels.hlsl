RWStructuredBuffer<uint> values : register(u0);
// [numthreads(1, 1, 1)] void Retired() {}
[numthreads(64, 1, 1)]
void Fill(uint3 id : SV_DispatchThreadID) { values[id.x] = id.x; }
[numthreads(64, 1, 1)]
void Reverse(uint3 id : SV_DispatchThreadID) { values[63 - id.x] = values[id.x]; }
