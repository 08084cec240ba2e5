// --grid 1 --subgroup-size 4 --buffer 0.0=random:256
// Clean: multi-split by ballots, offsets of subgroups in shared memory.
#version 450
#extension GL_KHR_shader_subgroup_ballot : require
layout(local_size_x = 16) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) writeonly buffer O { uint o[]; };
shared uint counts[4][2];
void main() {
    uint i = gl_LocalInvocationID.x;
    uint bit = x[i] & 1u;
    uvec4 ones = subgroupBallot(bit == 1u);
    uint before = subgroupBallotExclusiveBitCount(ones);
    if (subgroupElect()) {
        counts[gl_SubgroupID][1] = subgroupBallotBitCount(ones);
        counts[gl_SubgroupID][0] = gl_SubgroupSize - subgroupBallotBitCount(ones);
    }
    barrier();
    uint base = 0u;
    for (uint b = 0u; b <= bit; b++)
        for (uint s = 0u; s < gl_NumSubgroups; s++)
            if (b < bit || s < gl_SubgroupID) base += counts[s][b];
    uint rank = bit == 1u ? before : gl_SubgroupInvocationID - before;
    o[base + rank] = x[i];
}
//~ main: clean
