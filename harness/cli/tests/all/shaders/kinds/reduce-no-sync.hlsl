// --grid 2
// Racy: GroupMemoryBarrier does not wait.
StructuredBuffer<float> input : register(t0);
RWStructuredBuffer<float> output : register(u1);
groupshared float sums[16];
[numthreads(16, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint t : SV_GroupIndex, uint3 g : SV_GroupID) {
    sums[t] = input[id.x];
    GroupMemoryBarrier();
    if (t == 0) { float s = 0; for (uint i = 0; i < 16; i++) s += sums[i]; output[g.x] = s; } //~ race with 8; fix: put `GroupMemoryBarrierWithGroupSync();` before this line
}
//~ main: racy; mended: clean
