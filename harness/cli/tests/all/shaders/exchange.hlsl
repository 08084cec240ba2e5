RWStructuredBuffer<uint> data : register(u0);
groupshared uint row[2];

[numthreads(2, 1, 1)]
void swap(uint3 id : SV_GroupThreadID) {
    row[id.x] = id.x;
#ifdef MEND
    GroupMemoryBarrierWithGroupSync();
#endif
    data[id.x] = row[1 - id.x];
}
