// --grid 2 --buffer 0.0=iota:64
// Clean: glslang computes both sides of `&&`, and nobody looks at what lies beyond the end where the first is false.
cbuffer Bounds : register(b2) { uint limits[4]; };
StructuredBuffer<uint> data : register(t0);
RWStructuredBuffer<uint> hits : register(u1);
[numthreads(8, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint lane : SV_GroupIndex) {
    if (lane < 4 && limits[lane] <= data[id.x]) hits[id.x] = 1;
    if (lane >= 4 || limits[lane] > 7) hits[id.x] = 2;
}
//~ main: clean
