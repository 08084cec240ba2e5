// --grid 2 --buffer 0.0=iota:256 --buffer 0.1=random:256
// Racy: roots are looked up by plain reads, as ECL-CC does.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) coherent buffer Parent { uint parent[]; };
layout(binding = 1) readonly buffer Edges { uint other[]; };
uint find(uint i) {
    uint p = parent[i]; //~ race with 11, without a fix
    while (p != i) {
        uint g = parent[p];
        parent[i] = g;
        i = p;
        p = g;
    }
    return i;
}
void main() {
    uint a = gl_GlobalInvocationID.x, b = other[a] & 15u;
    bool done = false;
    while (!done) {
        a = find(a);
        b = find(b);
        if (a == b) break;
        uint high = max(a, b), low = min(a, b);
        done = atomicCompSwap(parent[high], high, low) == high; //~ race with 10, without a fix; race with 8, without a fix
    }
}
//~ main: racy
