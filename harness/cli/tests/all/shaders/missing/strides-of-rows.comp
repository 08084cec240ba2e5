#version 450
// expect: needs-inputs
// Rows and planes, in bytes.
layout(local_size_x = 64) in;
layout(push_constant) uniform P { uint count, nb0, nb1, nb2, from0, from1, from2; };
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) writeonly buffer B { float b[]; };
void main() {
    uvec3 at = uvec3(gl_WorkGroupID.yz, 0).zxy;
    for (uint i = gl_LocalInvocationID.x; i < count; i += gl_WorkGroupSize.x) {
        uint from = at.z * from2 + at.y * from1 + i * from0;
        b[(at.z * nb2 + at.y * nb1 + i * nb0) / 4] = a[from / 4];
    }
}
