#version 450
// expect: needs-inputs
// The strides of the source have no part in the race.
layout(local_size_x = 8, local_size_y = 4) in;
layout(push_constant) uniform P { uint from_x, from_y, x, y, z; };
layout(std430, binding = 0) buffer A { uint a[]; };
layout(std430, binding = 1) readonly buffer S { uint s[]; };
void main() {
    uvec3 at = gl_GlobalInvocationID;
    a[at.x * x + at.y * y + at.z * z] = s[at.x * from_x + at.y * from_y];
}
