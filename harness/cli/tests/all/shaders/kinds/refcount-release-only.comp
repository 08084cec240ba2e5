// --grid 3
// Racy: the last one does not acquire the others' reads.
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent buffer Object { uint readers; uint data; };
layout(std430, binding = 1) writeonly buffer Out { uint got[]; };
void main() {
    got[gl_WorkGroupID.x] = data; //~ race with 11
    memoryBarrierBuffer();
    if (atomicAdd(readers, 1u) == gl_NumWorkGroups.x - 1u) { //~ fix: put `memoryBarrierBuffer();` after this atomic
        data = 99u;
    }
}
//~ main: racy; mended: clean
