// --inputs auto
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer E { uvec2 edge[]; };
layout(std430, binding = 1) buffer D { uint deg[]; };
layout(push_constant) uniform P { uint n, m; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) deg[i] = 0u;
    if (i < m) { atomicAdd(deg[edge[i].x], 1u); atomicAdd(deg[edge[i].y], 1u); }
}
//~ main: needs-inputs
