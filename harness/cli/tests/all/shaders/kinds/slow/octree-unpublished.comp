// --grid 2 --buffer 0.0=random:256
// Racy: the node is given before what is in it.
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) readonly buffer P { uint key[]; };
layout(binding = 1) coherent buffer Tree { uint used; uint child[256]; uint data[256]; };
const uint BUSY = 0xffffffffu;
void main() {
    uint k = key[gl_GlobalInvocationID.x], node = 0u, level = 0u;
    for (int tries = 0; tries < 64 && level < 3u; tries++) {
        uint at = node * 4u + (k >> (2u * level) & 3u);
        uint next = atomicCompSwap(child[at], 0u, BUSY);
        if (next == 0u) {
            next = atomicAdd(used, 1u) + 1u;
            atomicExchange(child[at], next);
            data[next] = k; //~ race with 21; fix: make this access atomic (it remains unordered)
        } else if (next == BUSY) {
            continue;
        }
        memoryBarrierBuffer();
        if (data[next] == 0u) break; //~ fix: make this access atomic (it remains unordered)
        node = next;
        level++;
    }
}
//~ main: racy; mended: clean in the orders tried
