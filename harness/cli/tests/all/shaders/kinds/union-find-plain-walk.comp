// --inputs auto
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer E { uvec2 edge[]; };
layout(binding = 1) coherent buffer P { uint parent[]; };
layout(push_constant) uniform C { uint edges; };
uint root(uint v) {
    uint p = parent[v];
    while (p != v) {
        v = p;
        p = parent[v];
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
//~ main: needs-inputs
