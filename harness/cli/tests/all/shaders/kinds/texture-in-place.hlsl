// --grid 2,2 --image 0.0=8x8
// Racy: a blur in place.
RWTexture2D<float4> img : register(u0);
[numthreads(4, 4, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    float4 s = img[id.xy] + img[id.xy + uint2(1, 0)]; //~ race with 8, without a fix
    GroupMemoryBarrierWithGroupSync();
    img[id.xy] = s * 0.5;
}
//~ main: racy
