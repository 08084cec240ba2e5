#version 450
// A fold with two accumulators.
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer B0 { uint data[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uvec2 ab = uvec2(0u, 1u);
    for (uint k = 0u; k < data[i]; ++k) { ab = uvec2(ab.y, ab.x + ab.y); }
    data[i] = ab.x;
}
