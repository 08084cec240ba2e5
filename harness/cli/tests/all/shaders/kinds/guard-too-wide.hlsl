// --grid 2 --buffer 0.0=iota:64
// Racy: lane 4 looks at a fifth limit.
cbuffer Bounds : register(b2) { uint limits[4]; };
StructuredBuffer<uint> data : register(t0);
RWStructuredBuffer<uint> hits : register(u1);
[numthreads(8, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint lane : SV_GroupIndex) {
    if (lane < 5 && limits[lane] <= data[id.x]) hits[id.x] = 1; //~ out-of-bounds, without a fix
    if (lane >= 4 || limits[lane] > 7) hits[id.x] = 2;
}
//~ main: racy
