#version 450
// expect: racy
// As joined-mask.comp, with a number that is the largest of the first contents, and a function.
layout(local_size_x = 64) in;
layout(push_constant) uniform Params { float iso; };
layout(std430, binding = 0) readonly buffer Field { float field[]; };
layout(std430, binding = 1) buffer Vertices { uint vertices[]; };
float value_at(uint i) { return field[i]; }
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint mask = 0u;
    for (uint corner = 0u; corner < 8u; ++corner)
        if (value_at(i + corner) < iso) mask |= 1u << corner;
    if (mask == 0u || mask == 255u) return;
    vertices[0] = i;
}
