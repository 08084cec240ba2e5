// --grid 2 --image 0.3=16x16
struct Item { float3 position; uint id; };
StructuredBuffer<Item> items : register(t0);
RWStructuredBuffer<Item> sorted : register(u1);
RWByteAddressBuffer raw : register(u2);
RWTexture2D<float4> picture : register(u3);
groupshared uint counts[16];
groupshared uint total;
[numthreads(16, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint lane : SV_GroupIndex, uint3 group : SV_GroupID) {
    counts[lane] = items[id.x].id;
    if (lane == 0) total = 0; //~ race with 15; fix: put `GroupMemoryBarrierWithGroupSync();` after the statement that this line controls
    GroupMemoryBarrier();
    uint old;
    InterlockedAdd(total, counts[15 - lane], old); //~ race with 11; uninitialised-read
    GroupMemoryBarrierWithGroupSync();
    Item item = items[id.x];
    item.id = total;
    sorted[id.x] = item;
    raw.Store(id.x * 4, old);
    raw.InterlockedMax(4096, lane);
    picture[id.xy] = float4(1, 2, 3, (float)group.x);
}
//~ main: racy; mended: clean in the orders tried
