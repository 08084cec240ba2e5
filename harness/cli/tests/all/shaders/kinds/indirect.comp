// --grid 2 --buffer 0.0=random:256
// Clean: culling, the last one rounds the groups up.
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) coherent buffer A { uint groups; uint one_y; uint one_z; uint visible; uint done; };
layout(binding = 2) writeonly buffer L { uint list[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if ((x[i] & 1u) != 0u) list[atomicAdd(visible, 1u)] = i;
    memoryBarrierBuffer();
    if (atomicAdd(done, 1u) == gl_NumWorkGroups.x * gl_WorkGroupSize.x - 1u) {
        memoryBarrierBuffer();
        groups = (atomicOr(visible, 0u) + 63u) / 64u;
        one_y = 1u;
        one_z = 1u;
    }
}
//~ main: clean in the orders tried
