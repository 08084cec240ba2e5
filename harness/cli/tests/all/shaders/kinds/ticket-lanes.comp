// --grid 2 --subgroup-size 4
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) coherent buffer Data { uint next; uint serving; uint count; };
void main() {
    uint mine = atomicAdd(next, 1u);
    while (atomicOr(serving, 0u) != mine) { } //~ hang with 11, without a fix
    memoryBarrierBuffer();
    count += 1;
    memoryBarrierBuffer();
    atomicAdd(serving, 1u);
}
//~ main: racy
