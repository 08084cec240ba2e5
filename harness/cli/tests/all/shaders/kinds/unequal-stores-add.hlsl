// --grid 1
// Racy: the stores differ, although an atomic between them writes what the second one stores.
RWStructuredBuffer<uint> o : register(u0);
[numthreads(64, 1, 1)]
void main(uint t : SV_GroupIndex) {
    uint old;
    if (t == 0) o[0] = 5; //~ race with 9; fix: declare `o` globallycoherent
    if (t == 1) InterlockedAdd(o[0], 1, old);
    if (t == 2) o[0] = 6; //~ fix: put `DeviceMemoryBarrierWithGroupSync();` before this line
}
//~ main: racy; mended: clean; lost-order 7/8 -> 7: put `DeviceMemoryBarrierWithGroupSync();` after the statement that this line controls
