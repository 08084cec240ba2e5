// --grid 2 --subgroup-size 8 --buffer 0.0=random:256
// Racy in lockstep alone: each subgroup has a slot of its own, and its lanes read it without waiting for the one that writes.
#version 450
#extension GL_KHR_shader_subgroup_ballot : require
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer In { uint data[]; };
layout(std430, binding = 1) buffer Out { uint count; uint kept[]; };
shared uint base[32];
void main() {
    uint v = data[gl_GlobalInvocationID.x];
    bool keep = (v & 1u) != 0u;
    uvec4 mask = subgroupBallot(keep);
    uint total = subgroupBallotBitCount(mask), rank = subgroupBallotExclusiveBitCount(mask);
    if (subgroupElect()) base[gl_SubgroupID] = atomicAdd(count, total); //~ race with 15; fix: put `barrier();` after the statement that this line controls
    if (keep) kept[base[gl_SubgroupID] + rank] = v; //~ race; uninitialised-read
}
//~ main: racy; mended: clean in the orders tried
