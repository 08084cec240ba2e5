// --grid 2
RWTexture2D<uint> count : register(u0);
[numthreads(8, 1, 1)]
void main(uint3 id : SV_DispatchThreadID)
{
    count[uint2(id.x / 2, 0)] += 1;
}
