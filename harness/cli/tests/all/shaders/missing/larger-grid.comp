// expect: needs-inputs
// The words of the histogram collide from the fifth workgroup on, which no small grid has.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer D { uint d[]; };
layout(std430, binding = 1) buffer H { uint h[256]; };
layout(std140, binding = 2) uniform U { uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) {
        uint k = d[i] & 255u;
        h[k] = h[k] + 1u;
    }
}
