// --grid 1
RWStructuredBuffer<uint> data : register(u0);
groupshared uint tile[64];
[numthreads(64, 1, 1)]
void main(uint lane : SV_GroupIndex, uint3 id : SV_DispatchThreadID)
{
    tile[lane] = data[id.x];
    GroupMemoryBarrier();
    data[id.x] = tile[63 - lane];
}
