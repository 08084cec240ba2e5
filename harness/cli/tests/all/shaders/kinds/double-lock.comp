// --grid 2
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) coherent buffer Data { uint locks[2]; uint count; };
void main() {
    uint mine = gl_WorkGroupID.x;
    while (atomicCompSwap(locks[mine], 0u, 1u) != 0u) { }
    memoryBarrierBuffer();
    count += 1; //~ race; fix: use `atomicAdd` instead of this load and store
    memoryBarrierBuffer();
    atomicExchange(locks[mine], 0u);
}
//~ main: racy; mended: clean
