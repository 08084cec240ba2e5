#version 450
// expect: needs-inputs
// Rows of eight and the size of a workgroup agree only for the declared constants.
layout(local_size_x = 8, local_size_y = 8, local_size_x_id = 0, local_size_y_id = 1) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
shared uint tile[64];
void main() {
    uint local = gl_LocalInvocationID.y * 8u + gl_LocalInvocationID.x;
    tile[local] = gl_LocalInvocationIndex;
    barrier();
    data[gl_WorkGroupID.x * 64u + (local & 63u)] = tile[local & 63u];
}
