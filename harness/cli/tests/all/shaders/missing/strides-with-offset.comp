#version 450
// expect: needs-inputs
// Rows, planes and volumes, in bytes from an offset; extents decide the positions.
layout(local_size_x = 32) in;
layout(push_constant) uniform P { uint offset; int n0, n1, n2; uint nb0, nb1, nb2, nb3; };
layout(std430, binding = 0) writeonly buffer B { uint b[]; };
void main() {
    uvec3 group = gl_WorkGroupID;
    uint n = (group.z * n2 + group.y) * n1 * n0 + group.x * n0;
    uint i3 = n / (n2 * n1 * n0), i2 = n / (n1 * n0) % n2, i1 = n / n0 % n1, i0 = n % n0;
    uint start = (i3 * nb3 + i2 * nb2 + i1 * nb1 + i0 * nb0) / 4 + offset;
    for (uint i = gl_LocalInvocationID.x; i < n0; i += 32) b[start + i] = i;
}
