// --inputs auto
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer E { uvec2 edge[]; };
layout(binding = 1) coherent buffer P { uint parent[]; };
layout(push_constant) uniform C { uint edges; };
uint root(uint v) {
    uint p = atomicOr(parent[v], 0u);
    while (p != v) {
        v = p;
        p = atomicOr(parent[v], 0u);
    }
    return v;
}
void main() {
    uint e = gl_GlobalInvocationID.x;
    if (e >= edges) return;
    uint a = edge[e].x, b = edge[e].y;
    for (;;) {
        a = root(a);
        b = root(b);
        if (a == b) break;
        if (a < b) { uint t = a; a = b; b = t; }
        if (atomicCompSwap(parent[a], a, b) == a) break;
    }
}
//~ main: clean in the orders tried
