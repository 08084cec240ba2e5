RWStructuredBuffer<uint> data : register(u0);
RWStructuredBuffer<uint> kept : register(u1);
RWStructuredBuffer<uint> count : register(u2);
[numthreads(8, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    if (data[id.x] > 3) {
        uint slot;
        InterlockedAdd(count[0], 1, slot);
        kept[slot] = data[id.x];
    }
}