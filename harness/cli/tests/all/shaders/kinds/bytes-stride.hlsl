// --grid 2
// Racy: stride 12 below a Store4 of 16.
RWByteAddressBuffer raw : register(u0);
[numthreads(8, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    uint at = 64 + id.x * 12;
    raw.Store4(at, uint4(id.x, 1, 2, 3)); //~ race, without a fix
}
//~ main: racy
