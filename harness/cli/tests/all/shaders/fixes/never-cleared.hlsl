// --grid 1
RWStructuredBuffer<uint> data : register(u0);
groupshared uint hist[16];
[numthreads(32, 1, 1)]
void main(uint3 id : SV_DispatchThreadID)
{
    InterlockedAdd(hist[data[id.x] & 15], 1);
    GroupMemoryBarrierWithGroupSync();
    data[id.x] = hist[id.x & 15];
}
