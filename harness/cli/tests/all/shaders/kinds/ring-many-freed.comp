// --grid 2
// Racy: who empties the cell does not release its read before the cell is filled again.
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent buffer Ring { uint enq; uint deq; uint seq[4]; uint data[4]; };
layout(std430, binding = 1) writeonly buffer Out { uint got[64]; };
void main() {
    for (uint i = 0u; i < 8u; i++) {
        uint pos = atomicAdd(enq, 1u);
        uint cell = pos & 3u, turn = pos >> 2u;
        while (atomicAdd(seq[cell], 0u) != 2u * turn) {}
        memoryBarrierBuffer();
        data[cell] = gl_WorkGroupID.x * 100u + i;
        memoryBarrierBuffer();
        atomicExchange(seq[cell], 2u * turn + 1u);
        pos = atomicAdd(deq, 1u);
        cell = pos & 3u; turn = pos >> 2u;
        while (atomicAdd(seq[cell], 0u) != 2u * turn + 1u) {}
        memoryBarrierBuffer();
        got[pos] = data[cell]; //~ race with 13
        atomicExchange(seq[cell], 2u * turn + 2u); //~ fix: put `memoryBarrierBuffer();` before this atomic
    }
}
//~ main: racy; mended: clean in the orders tried
