// --grid 2,1,1 --buffer 0.0=random:1024
// Racy: inclusive offsets of the last lane reach into the next workgroup's room (base+offset16+i overlaps).
#version 450
layout(local_size_x = 4, local_size_y = 2, local_size_z = 2) in;
layout(std430, binding = 0) readonly buffer Cases { uint cube[]; };
layout(std430, binding = 1) buffer Mesh { uint vertices; uint pad0; uint pad1; uint pad2; vec4 vertex[]; };
shared uint offset[17];
shared uint base;
void main() {
    uint l = gl_LocalInvocationIndex;
    uint n = 3u * (cube[gl_WorkGroupID.x * 16u + l] % 5u);
    offset[l + 1u] = n;
    if (l == 0u) offset[0] = 0u;
    barrier();
    if (l == 0u) {
        for (uint i = 1u; i <= 16u; i++) offset[i] += offset[i - 1u];
        base = atomicAdd(vertices, offset[16]);
    }
    barrier();
    for (uint i = 0u; i < n; i++) vertex[base + offset[l + 1u] + i] = vec4(gl_GlobalInvocationID, float(i)); //~ race, without a fix
}
//~ main: racy
