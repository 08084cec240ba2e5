// --grid 2 --buffer 0.0=random:256
// Racy: everybody writes the number of groups.
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) coherent buffer A { uint groups; uint visible; };
layout(binding = 2) writeonly buffer L { uint list[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if ((x[i] & 1u) != 0u) {
        uint n = atomicAdd(visible, 1u);
        list[n] = i;
        groups = n / 64u + 1u; //~ race; fix: use `atomicExchange` for this store, which several invocations may make
    }
}
//~ main: racy; mended: clean
