RWStructuredBuffer<uint> data : register(u0);
groupshared uint tile[64];
[numthreads(64, 1, 1)]
void Sum(uint3 id : SV_DispatchThreadID, uint i : SV_GroupIndex) {
    tile[i] = data[id.x];
    data[id.x] = tile[63 - i];
}
