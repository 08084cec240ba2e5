#version 450
// expect: racy
// Each invocation reads the element of the next one, for every stride.
layout(local_size_x = 8, local_size_y = 4) in;
layout(push_constant) uniform P { uint x, y, z; };
layout(std430, binding = 0) buffer A { uint a[]; };
void main() {
    uvec3 at = gl_GlobalInvocationID;
    uint place = at.x * x + at.y * y + at.z * z;
    a[place] = a[place + x];
}
