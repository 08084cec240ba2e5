// --grid 1
RWStructuredBuffer<uint> data : register(u0);
cbuffer C : register(b1) { uint n; };
groupshared uint s[32];
[numthreads(32, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint lane : SV_GroupIndex)
{
    uint sum = 0;
    for (uint i = lane; i < 50; i += 32)
    {
        s[lane] = data[i];
        GroupMemoryBarrierWithGroupSync();
        sum += s[31 - lane];
    }
    data[lane] = sum;
}
