// --grid 2 --subgroup-size 8 --buffer 0.0=random:256
// Clean.
#version 450
#extension GL_KHR_shader_subgroup_ballot : require
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer In { uint data[]; };
layout(std430, binding = 1) buffer Out { uint count; uint kept[]; };
void main() {
    uint v = data[gl_GlobalInvocationID.x];
    bool keep = (v & 1u) != 0u;
    uvec4 mask = subgroupBallot(keep);
    uint total = subgroupBallotBitCount(mask), rank = subgroupBallotExclusiveBitCount(mask), base = 0u;
    if (subgroupElect()) base = atomicAdd(count, total);
    base = subgroupBroadcastFirst(base);
    if (keep) kept[base + rank] = v;
}
//~ main: clean in the orders tried
