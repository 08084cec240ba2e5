// --subgroup-size 8
RWStructuredBuffer<float> data : register(u0);
groupshared float x[64];
[numthreads(64, 1, 1)]
void main(uint lane : SV_GroupIndex)
{
    x[lane] = data[lane];
    GroupMemoryBarrierWithGroupSync();
    if (lane < 32)
    {
        x[lane] = min(x[lane], x[lane + 32]);
        x[lane] = min(x[lane], x[lane + 16]);
        x[lane] = min(x[lane], x[lane + 8]);
        x[lane] = min(x[lane], x[lane + 4]);
        x[lane] = min(x[lane], x[lane + 2]);
        x[lane] = min(x[lane], x[lane + 1]);
    }
    GroupMemoryBarrierWithGroupSync();
    if (lane == 0) data[0] = x[0];
}
