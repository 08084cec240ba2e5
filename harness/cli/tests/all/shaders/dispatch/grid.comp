#version 450
layout(local_size_x = 2, local_size_y = 3, local_size_z = 2) in;
layout(set = 0, binding = 0, std140) uniform Scale { uvec2 more; uint factor; } scale;
layout(set = 0, binding = 1, std430) buffer Cells { uint sum; uint wrong; uint at[]; } cells;
void main() {
    uvec3 size = gl_NumWorkGroups * gl_WorkGroupSize;
    uvec3 id = gl_GlobalInvocationID;
    uint index = id.x + size.x * (id.y + size.y * id.z);
    uint local = gl_LocalInvocationID.x + 2 * (gl_LocalInvocationID.y + 3 * gl_LocalInvocationID.z);
    uvec3 again = gl_WorkGroupID * gl_WorkGroupSize + gl_LocalInvocationID;
    if (local != gl_LocalInvocationIndex || again.x != id.x || again.y != id.y || again.z != id.z) atomicAdd(cells.wrong, 1);
    uint value = scale.factor * (id.x + 10 * id.y + 100 * id.z) + scale.more.y;
    cells.at[index] = value;
    atomicAdd(cells.sum, value);
}
