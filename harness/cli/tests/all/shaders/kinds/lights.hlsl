// --grid 2,2 --image 0.0=16x16,fill=floats
// Clean: the tile's nearest and farthest by InterlockedMin and -Max, its list by InterlockedAdd; both sides of `&&` are computed.
Texture2D<float> depth : register(t0);
RWStructuredBuffer<uint> lists : register(u1);
cbuffer Lights : register(b2) { float4 light[8]; uint lights; };
groupshared uint nearest, farthest, count, list[8];
[numthreads(8, 8, 1)]
void main(uint3 id : SV_DispatchThreadID, uint lane : SV_GroupIndex, uint3 group : SV_GroupID) {
    if (lane == 0) { nearest = 0xffffffff; farthest = 0; count = 0; }
    GroupMemoryBarrierWithGroupSync();
    uint d = asuint(depth.Load(int3(id.xy, 0)));
    InterlockedMin(nearest, d);
    InterlockedMax(farthest, d);
    GroupMemoryBarrierWithGroupSync();
    if (lane < 8 && light[lane].z >= asfloat(nearest) - 1.0) {
        uint at;
        InterlockedAdd(count, 1, at);
        list[at] = lane;
    }
    GroupMemoryBarrierWithGroupSync();
    uint tile = (group.y * 2 + group.x) * 9;
    if (lane == 0) lists[tile] = count;
    if (lane < count) lists[tile + 1 + lane] = list[lane];
}
//~ main: clean in the orders tried
