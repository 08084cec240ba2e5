// --grid 2
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) coherent buffer Data { uint seq; uint a; uint b; uint ok; };
void main() {
    if (gl_WorkGroupID.x == 0) {
        atomicAdd(seq, 1u); memoryBarrierBuffer();
        a = 1; b = 1; //~ race with 12, without a fix
        memoryBarrierBuffer(); atomicAdd(seq, 1u);
    } else {
        uint s0 = atomicAdd(seq, 0u); memoryBarrierBuffer();
        uint x = a, y = b;
        memoryBarrierBuffer();
        if (s0 == atomicAdd(seq, 0u) && (s0 & 1u) == 0u) ok = uint(x == y);
    }
}
//~ main: racy
