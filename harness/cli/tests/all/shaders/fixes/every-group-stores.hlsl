// --grid 2
RWStructuredBuffer<uint> data : register(u0);
RWStructuredBuffer<uint> done : register(u1);
[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID)
{
    data[id.x] = id.x;
    done[0] = 1;
}
