// --grid 3
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) coherent buffer Data { int readers; uint value; uint seen[3]; };
void main() {
    uint me = gl_WorkGroupID.x;
    if (me == 0) {
        while (atomicCompSwap(readers, 0, -1) != 0) { }
        memoryBarrierBuffer();
        value = 7;
        memoryBarrierBuffer();
        atomicExchange(readers, 0);
    } else {
        int had = atomicAdd(readers, 0);
        while (had < 0 || atomicCompSwap(readers, had, had + 1) != had) had = atomicAdd(readers, 0);
        memoryBarrierBuffer();
        seen[me] = value;
        memoryBarrierBuffer();
        atomicAdd(readers, -1);
    }
}
//~ main: clean in the orders tried
