// --grid 2 --subgroup-size 8
// Clean: append by wave.
StructuredBuffer<uint> input : register(t0);
RWStructuredBuffer<uint> counter : register(u1);
RWStructuredBuffer<uint> list : register(u2);
[numthreads(16, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    bool keep = (input[id.x] & 1) == 0;
    uint count = WaveActiveCountBits(keep), before = WavePrefixCountBits(keep), base = 0;
    if (WaveIsFirstLane()) InterlockedAdd(counter[0], count, base);
    base = WaveReadLaneFirst(base);
    if (keep) list[base + before] = id.x;
}
//~ main: clean in the orders tried
