// --grid 2 --buffer 0.0=iota:512
// Racy: GroupMemoryBarrier does not wait.
StructuredBuffer<uint> input : register(t0);
RWStructuredBuffer<uint> result : register(u1);
groupshared uint part[32];
[numthreads(32, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint lane : SV_GroupIndex) {
    part[lane] = input[id.x];
    GroupMemoryBarrier();
    result[id.x] = part[31 - lane]; //~ race with 8; fix: put `GroupMemoryBarrierWithGroupSync();` before this line
}
//~ main: racy; mended: clean
