// --grid 2 --image 0.2=4x4
// Clean: byte buffers and image atomics.
ByteAddressBuffer src : register(t0);
RWByteAddressBuffer dst : register(u1);
RWTexture2D<uint> img : register(u2);
static const uint table[4] = { 3, 1, 2, 0 };
[numthreads(4, 2, 1)]
void main(uint3 id : SV_DispatchThreadID, uint3 l : SV_GroupThreadID, uint i : SV_GroupIndex) {
    uint4 v = src.Load4(id.x * 16);
    dst.Store2((id.y * 8 + id.x) * 8, v.xy + table[i & 3]);
    uint old;
    InterlockedAdd(img[l.xy], 1, old);
    dst.InterlockedOr(2048, 1u << i);
}
//~ main: clean
