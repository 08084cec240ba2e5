// --grid 2
// Clean: exchange through a globallycoherent buffer within the group by AllMemoryBarrierWithGroupSync.
globallycoherent RWStructuredBuffer<uint> data : register(u0);
[numthreads(8, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint lane : SV_GroupIndex, uint3 group : SV_GroupID) {
    data[id.x] = lane;
    AllMemoryBarrierWithGroupSync();
    uint v = data[group.x * 8 + 7 - lane];
    AllMemoryBarrierWithGroupSync();
    data[id.x] = v;
}
//~ main: clean
