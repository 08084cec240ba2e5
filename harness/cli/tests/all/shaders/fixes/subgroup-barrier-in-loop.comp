// red and black in one workgroup: bug = subgroup barrier between colours
#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 8, local_size_y = 8) in;
layout(std430, binding = 0) buffer U { float u[]; };
shared float t[10][10];
void main() {
    uint x = gl_LocalInvocationID.x + 1, y = gl_LocalInvocationID.y + 1;
    uint g = gl_WorkGroupID.x * 100;
    for (uint i = gl_LocalInvocationIndex; i < 100; i += 64) t[i / 10][i % 10] = u[g + i];
    barrier();
    for (int it = 0; it < 2; ++it) {
        for (uint c = 0; c < 2; ++c) {
            if (((x + y) & 1) == c) t[y][x] = 0.25 * (t[y][x - 1] + t[y][x + 1] + t[y - 1][x] + t[y + 1][x]);
            subgroupBarrier();
        }
    }
    u[g + y * 10 + x] = t[y][x];
}
