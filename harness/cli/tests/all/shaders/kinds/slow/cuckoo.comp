// --grid 2 --buffer 0.0=iota:256
// Clean: eviction by exchange.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer Keys { uint keys[]; };
layout(binding = 1) buffer Table { uint table[64]; uint failed; };
uint h(uint k, uint f) { return (k * (f == 0u ? 2654435761u : 2246822519u)) >> 26; }
void main() {
    uint k = keys[gl_GlobalInvocationID.x] + 1u;
    uint at = h(k, 0u);
    for (int n = 0; n < 16; n++) {
        k = atomicExchange(table[at], k);
        if (k == 0u) return;
        uint first = h(k, 0u);
        at = at == first ? h(k, 1u) : first;
    }
    atomicAdd(failed, 1u);
}
//~ main: clean
