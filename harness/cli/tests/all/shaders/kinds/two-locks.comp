// --grid 2
// Hang: two locks in opposite order.
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer L { uint lock[2]; };
layout(binding = 1) coherent buffer D { uint a; uint b; };
void take(uint i) { while (atomicCompSwap(lock[i], 0u, 1u) != 0u) {} memoryBarrierBuffer(); } //~ hang, without a fix
void give(uint i) { memoryBarrierBuffer(); atomicExchange(lock[i], 0u); }
void main() {
    uint g = gl_WorkGroupID.x;
    take(g); take(1u - g);
    uint t = a; a = b; b = t;
    give(1u - g); give(g);
}
//~ main: racy
