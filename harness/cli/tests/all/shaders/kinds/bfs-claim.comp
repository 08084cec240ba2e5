// --grid 2 --buffer 0.0=iota:1024
#version 450
layout(local_size_x = 16) in;
layout(binding = 0) readonly buffer Edges { uint edges[]; };
layout(binding = 1) buffer Level { uint level[]; };
layout(binding = 2) buffer Next { uint count; uint next[]; };
void main() {
    uint v = gl_GlobalInvocationID.x;
    for (uint e = 0; e < 2; ++e) {
        uint to = edges[v * 2 + e] / 3;
        if (atomicCompSwap(level[to], 0u, 1u) == 0u) { uint at = atomicAdd(count, 1u); next[at] = to; }
    }
}
//~ main: clean in the orders tried
