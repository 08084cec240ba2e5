// --grid 1 --subgroup-size 4 --buffer 0.0=iota:256
// Clean: stream compaction by scans of subgroups, one of them under a branch.
#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
layout(local_size_x = 16) in;
layout(binding = 0) readonly buffer In { uint keep[]; };
layout(binding = 1) buffer Out { uint taken; uint kept[]; };
shared uint sums[16];
void main() {
    uint me = gl_LocalInvocationIndex;
    bool mine = (keep[gl_GlobalInvocationID.x] & 1) == 1;
    uint before = subgroupExclusiveAdd(mine ? 1u : 0u);
    if (gl_SubgroupInvocationID == gl_SubgroupSize - 1) {
        sums[gl_SubgroupID] = before + (mine ? 1u : 0u);
    }
    barrier();
    if (gl_SubgroupID == 0) {
        uint sum = me < gl_NumSubgroups ? sums[me] : 0u;
        uint scanned = subgroupExclusiveAdd(sum);
        if (me < gl_NumSubgroups) sums[me] = scanned;
        if (me == gl_NumSubgroups - 1) taken = scanned + sum;
    }
    barrier();
    if (mine) kept[sums[gl_SubgroupID] + before] = gl_GlobalInvocationID.x;
}
//~ main: clean
