// --grid 2
// The fence of a UAV without `globallycoherent` does not reach another group.
RWStructuredBuffer<uint> data : register(u0);
RWStructuredBuffer<uint> flag : register(u1);

[numthreads(1, 1, 1)]
void main(uint3 group : SV_GroupID) {
    uint seen;
    if (group.x == 0) {
        data[0] = 7; //~ unpublished-read with 16; fix: declare `data` globallycoherent
        DeviceMemoryBarrier();
        InterlockedExchange(flag[0], 1, seen);
    } else {
        InterlockedOr(flag[0], 0, seen);
        DeviceMemoryBarrier();
        if (seen == 1) flag[1] = data[0];
    }
}
//~ main: racy; mended: clean
