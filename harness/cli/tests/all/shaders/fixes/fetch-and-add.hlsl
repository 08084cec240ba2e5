// --grid 2 --buffer 0.0=random:512
StructuredBuffer<uint> values : register(t0);
RWStructuredBuffer<uint> bins : register(u1);
RWStructuredBuffer<uint> slots : register(u2);
[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID)
{
    uint v = values[id.x] & 15;
    uint slot = bins[v];
    bins[v] = slot + 1;
    slots[slot * 16 + v] = id.x;
}
