// --grid 2
// Clean: HLSL defines equal stores, also if an atomic changes the value between them.
RWStructuredBuffer<uint> o : register(u0);
[numthreads(64, 1, 1)]
void main() {
    uint old;
    o[0] = 1; //~ lost-order; fix: make this access atomic (it remains unordered)
    InterlockedAdd(o[0], 1, old);
}
//~ main: clean; mended: clean
