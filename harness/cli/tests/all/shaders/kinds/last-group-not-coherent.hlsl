// --grid 3 --buffer 0.0=iota:512
// Racy: not globallycoherent.
StructuredBuffer<uint> input : register(t0);
RWStructuredBuffer<uint> partial : register(u1);
globallycoherent RWByteAddressBuffer counter : register(u2);
RWStructuredBuffer<uint> result : register(u3);
groupshared uint sum;
[numthreads(16, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint lane : SV_GroupIndex, uint3 group : SV_GroupID) {
    if (lane == 0) sum = 0;
    GroupMemoryBarrierWithGroupSync();
    uint old;
    InterlockedAdd(sum, input[id.x], old);
    GroupMemoryBarrierWithGroupSync();
    if (lane == 0) {
        partial[group.x] = sum; //~ unpublished-read with 21; fix: declare `partial` globallycoherent
        DeviceMemoryBarrier();
        counter.InterlockedAdd(0, 1, old);
        if (old == 2) {
            DeviceMemoryBarrier();
            result[0] = partial[0] + partial[1] + partial[2];
        }
    }
}
//~ main: racy; mended: clean in the orders tried
