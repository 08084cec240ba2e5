// --grid 1 --subgroup-size 4
// Clean: sums of waves, then of the group.
RWStructuredBuffer<uint> d : register(u0);
groupshared uint part[4];
[numthreads(16, 1, 1)]
void main(uint t : SV_GroupIndex) {
    uint v = d[t];
    uint p = WavePrefixSum(v);
    uint wave = t / WaveGetLaneCount();
    if (WaveGetLaneIndex() == WaveGetLaneCount() - 1) part[wave] = p + v;
    GroupMemoryBarrierWithGroupSync();
    for (uint w = 0; w < wave; w++) p += part[w];
    d[t] = p;
}
//~ main: clean
