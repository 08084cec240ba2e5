// --grid 1
// fix: use `InterlockedOr` instead of this load and store
// A set of lanes in a texel.
RWTexture2D<uint> lanes : register(u0);
[numthreads(8, 1, 1)]
void main(uint lane : SV_GroupIndex)
{
    lanes[uint2(0, 1)] |= 1u << lane;
}
