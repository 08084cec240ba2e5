// --grid 1
// Divergent: some have returned before the barrier.
RWStructuredBuffer<uint> o : register(u0);
groupshared uint s[8];
[numthreads(8, 1, 1)]
void main(uint t : SV_GroupIndex) {
    if (t >= 6) return; //~ fix: move this `return` after the last barrier, and guard the code before that by a condition
    s[t] = t;
    GroupMemoryBarrierWithGroupSync(); //~ divergent-barrier with 6
    o[t] = s[5 - t];
}
//~ main: racy; mended: clean
