#version 450
// expect: racy
// Elements on both sides of the compared number make the mask neither 0 nor 255: no zeros do.
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Field { float field[]; };
layout(std430, binding = 1) buffer Vertices { uint vertices[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint mask = 0u;
    for (uint corner = 0u; corner < 8u; ++corner)
        if (field[i + corner] < 0.5) mask |= 1u << corner;
    if (mask == 0u || mask == 255u) return;
    vertices[0] = i;
}
