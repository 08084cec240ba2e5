// --inputs auto
struct P { float3 pos; float life; };
ConsumeStructuredBuffer<P> Old : register(u0);
AppendStructuredBuffer<P> New : register(u1);
RWStructuredBuffer<uint> Alive : register(u2);
cbuffer C : register(b0) { uint count; float dt; };
[numthreads(64,1,1)]
void main(uint3 id : SV_DispatchThreadID) {
    if (id.x >= count) return;
    P p = Old.Consume();
    p.life -= dt;
    if (p.life > 0) { New.Append(p); InterlockedAdd(Alive[0], 1); }
}
//~ main: clean in the orders tried
