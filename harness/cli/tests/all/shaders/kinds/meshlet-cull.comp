// --grid 2 --subgroup-size 8 --buffer 0.0=random:1024
// Clean: meshlets, a command of indirect draws each, compacted by subgroups.
#version 450
#extension GL_KHR_shader_subgroup_ballot : require
layout(local_size_x = 16) in;
struct Command { uint count; uint instances; uint first; int base; uint instance; };
layout(binding = 0) readonly buffer M { uvec4 meshlets[]; };
layout(binding = 1) buffer N { uint draws; };
layout(binding = 2) writeonly buffer C { Command commands[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    bool seen = (meshlets[i].x & 3u) != 0u;
    uvec4 all = subgroupBallot(seen);
    uint base;
    if (subgroupElect()) base = atomicAdd(draws, subgroupBallotBitCount(all));
    base = subgroupBroadcastFirst(base);
    if (seen) commands[base + subgroupBallotExclusiveBitCount(all)] = Command(meshlets[i].y, 1, meshlets[i].z, 0, i);
}
//~ main: clean in the orders tried
