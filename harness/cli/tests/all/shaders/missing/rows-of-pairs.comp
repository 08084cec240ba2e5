#version 450
// expect: racy
// A count of one lets one invocation of each row pass, whose neighbour writes nothing.
layout(local_size_x = 16, local_size_y = 2) in;
layout(push_constant) uniform P { uint n, inner, outer; };
layout(std430, binding = 0) buffer A { uint a[]; };
void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    if (at.x >= n) return;
    uint row = at.y * outer;
    a[at.x * inner + row] = a[(at.x ^ 1u) * inner + row];
}
