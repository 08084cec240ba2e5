// --grid 4 --buffer groups=4
globallycoherent RWStructuredBuffer<uint> partial : register(u0);
RWStructuredBuffer<uint> counter : register(u1);
RWStructuredBuffer<uint> total : register(u2);
cbuffer Launch : register(b0) { uint groups; }
[numthreads(1, 1, 1)]
void main(uint3 group : SV_GroupID) {
    partial[group.x] = group.x;
    AllMemoryBarrier();
    uint done;
    InterlockedAdd(counter[0], 1, done);
    AllMemoryBarrier();
    if (done == groups - 1) {
        uint sum = 0;
        for (uint k = 0; k < groups; k++) sum += partial[k];
        total[0] = sum;
    }
}
//~ main: clean
