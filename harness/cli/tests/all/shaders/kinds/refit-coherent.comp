// --grid 2
#version 450
layout(local_size_x = 4) in;
struct Node { vec4 low; vec4 high; int parent; int left; int right; int pad; };
layout(binding = 0) coherent buffer Nodes { Node nodes[]; };
layout(binding = 1) buffer Visits { uint visits[]; };
void main() {
    int at = 7 + int(gl_GlobalInvocationID.x);
    nodes[at].low = vec4(at); nodes[at].high = vec4(at + 1);
    at = (at - 1) / 2;
    while (true) {
        memoryBarrierBuffer();
        if (atomicAdd(visits[at], 1) == 0) return;
        memoryBarrierBuffer();
        nodes[at].low = min(nodes[2 * at + 1].low, nodes[2 * at + 2].low);
        nodes[at].high = max(nodes[2 * at + 1].high, nodes[2 * at + 2].high);
        if (at == 0) return;
        at = (at - 1) / 2;
    }
}
//~ main: clean in the orders tried
