// --grid 1
// Divergent: some have returned before the barrier.
RWStructuredBuffer<uint> o : register(u0);
groupshared uint s[8];
[numthreads(8, 1, 1)]
void main(uint t : SV_GroupIndex) {
    if (t >= 6) return;
    s[t] = t;
    GroupMemoryBarrierWithGroupSync();
    o[t] = s[5 - t];
}
