RWStructuredBuffer<uint> cells : register(u0);
[numthreads(16, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) { cells[0] = id.x; }
