// --grid 1 --subgroup-size 4
// Racy in lockstep: the subgroup's memory barrier does not wait either.
#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 8) in;
layout(binding = 0) writeonly buffer O { uint o[]; };
shared uint s[8];
void main() {
    uint t = gl_LocalInvocationID.x;
    s[t] = t;
    subgroupMemoryBarrierShared();
    o[t] = s[t ^ 1]; //~ lockstep with 10; fix: put `barrier();` before this line
}
//~ main: racy; mended: clean
