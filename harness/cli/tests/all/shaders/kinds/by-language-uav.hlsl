// --grid 1
// A UAV is coherent in the group without `globallycoherent` (D3D11.3, 7.14.4).
RWStructuredBuffer<uint> data : register(u0);
RWStructuredBuffer<uint> result : register(u1);

[numthreads(32, 1, 1)]
void main(uint3 id : SV_GroupThreadID) {
    data[id.x] = id.x; //~ lost-order with 10; fix: declare `data` globallycoherent
    AllMemoryBarrierWithGroupSync();
    result[id.x] = data[id.x ^ 16];
}
//~ main: clean; mended: clean
