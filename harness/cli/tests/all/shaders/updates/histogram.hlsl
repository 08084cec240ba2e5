// --grid 2 --buffer 0.0=iota:1024
// fix: use `InterlockedOr` instead of this load and store
// Bits of a mask without an atomic.
StructuredBuffer<uint> values : register(t0);
RWStructuredBuffer<uint> masks : register(u1);
[numthreads(32, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    masks[values[id.x] >> 5] |= 1u << (values[id.x] & 31);
}
