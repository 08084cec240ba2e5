// --grid 2
StructuredBuffer<uint> from : register(t0);
RWStructuredBuffer<uint> to : register(u0);
cbuffer Numbers : register(b0) { uint shift; };
[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    to[id.x] = to[(id.x + 1) % 128] + from[id.x] + shift; //~ race, without a fix
}
//~ main: racy
