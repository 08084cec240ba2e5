// --grid 2 --subgroup-size 8 --buffer 0.0=random:256
// Clean: one atomic for all lanes with the same key.
#version 450
#extension GL_KHR_shader_subgroup_ballot : require
layout(local_size_x = 16) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) buffer H { uint hist[8]; };
void main() {
    uint k = x[gl_GlobalInvocationID.x] & 7u;
    bool left = true;
    while (left) {
        uint first = subgroupBroadcastFirst(k);
        if (first == k) {
            uvec4 same = subgroupBallot(true);
            if (subgroupElect()) atomicAdd(hist[k], subgroupBallotBitCount(same));
            left = false;
        }
    }
}
//~ main: clean in the orders tried
