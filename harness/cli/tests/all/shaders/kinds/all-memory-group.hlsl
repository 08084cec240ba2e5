// --grid 2
// Racy: GroupMemoryBarrierWithGroupSync orders groupshared alone.
globallycoherent RWStructuredBuffer<uint> data : register(u0);
[numthreads(8, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint lane : SV_GroupIndex, uint3 group : SV_GroupID) {
    data[id.x] = lane; //~ race with 8
    GroupMemoryBarrierWithGroupSync(); //~ fix: use `AllMemoryBarrierWithGroupSync();` instead of `GroupMemoryBarrierWithGroupSync();`
    uint v = data[group.x * 8 + 7 - lane];
    GroupMemoryBarrierWithGroupSync(); //~ fix: use `AllMemoryBarrierWithGroupSync();` instead of `GroupMemoryBarrierWithGroupSync();`
    data[id.x] = v;
}
//~ main: racy; mended: clean
