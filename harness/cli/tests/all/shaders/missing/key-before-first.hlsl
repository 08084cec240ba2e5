// expect: clean
// The element before the first one has an offset below zero, with which no counterexample is replayed.
StructuredBuffer<uint> keys;
RWStructuredBuffer<uint> offsets;
uint count;
[numthreads(256, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    if (id.x >= count) return;
    uint i = id.x;
    uint key = keys[i];
    uint previous = i == 0 ? count : keys[i - 1];
    if (key != previous) offsets[key] = i;
}
