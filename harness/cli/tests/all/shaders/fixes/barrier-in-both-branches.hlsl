// --grid 1
RWStructuredBuffer<uint> data : register(u0);
groupshared uint tile[32];
[numthreads(32, 1, 1)]
void main(uint lane : SV_GroupIndex, uint3 group : SV_GroupID)
{
    if (lane < 16)
    {
        tile[lane] = data[lane];
        GroupMemoryBarrierWithGroupSync();
        data[lane] = tile[15 - lane];
    }
    else
    {
        tile[lane] = lane;
        GroupMemoryBarrierWithGroupSync();
        data[lane] = tile[lane ^ 16];
    }
}
