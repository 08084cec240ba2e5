// --grid 2 --push 0=128
#version 450
layout(local_size_x = 64) in;
struct Node { vec3 lo; int parent; vec3 hi; int left; int right; };
layout(std430, binding = 0) coherent buffer Nodes { Node nodes[]; };
layout(std430, binding = 1) coherent buffer Visits { uint visits[]; };
layout(push_constant) uniform P { uint leaves; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= leaves) return;
    // implicit complete binary tree: leaves at [leaves-1, 2*leaves-1)
    uint n = leaves - 1 + i;
    nodes[n].lo = vec3(i);
    nodes[n].hi = vec3(i + 1);
    while (n != 0) {
        n = (n - 1) / 2;
        memoryBarrierBuffer();
        if (atomicAdd(visits[n], 1) == 0) return;
        memoryBarrierBuffer();
        nodes[n].lo = min(nodes[2*n+1].lo, nodes[2*n+2].lo);
        nodes[n].hi = max(nodes[2*n+1].hi, nodes[2*n+2].hi);
    }
}
//~ main: clean in the orders tried
