// --grid 2 --subgroup-size 4
#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 8) in;
layout(binding = 0) coherent buffer Data { uint lock; uint count; };
void main() {
    if (subgroupElect()) {
        while (atomicCompSwap(lock, 0u, 1u) != 0u) { }
        memoryBarrierBuffer();
        count += 1;
        memoryBarrierBuffer();
        atomicExchange(lock, 0u);
    }
}
//~ main: clean in the orders tried
