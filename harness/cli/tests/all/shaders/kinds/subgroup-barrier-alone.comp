// --inputs auto
// Racy: lanes of different subgroups meet, and the shader has no other sign of subgroups than the barrier.
#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 128) in;
layout(binding = 0) buffer Data { uint data[]; };
shared uint tile[128];
void main() {
    uint lane = gl_LocalInvocationIndex, i = gl_GlobalInvocationID.x;
    tile[lane] = data[i]; //~ race with 12; fix: put `barrier();` after this line
    subgroupBarrier();
    data[i] = tile[127u - lane];
}
//~ main: racy; mended: clean
