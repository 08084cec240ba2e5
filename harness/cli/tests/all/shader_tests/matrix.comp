#version 450
layout(local_size_x = 2, local_size_y = 2) in;
layout(std430, binding = 0) readonly buffer A { float a[]; };
layout(std430, binding = 1) readonly buffer B { float b[]; };
layout(std430, binding = 2) writeonly buffer C { float c[]; };
void main() {
    uint x = gl_GlobalInvocationID.x, y = gl_GlobalInvocationID.y;
    float sum = 0.0;
    for (uint k = 0; k < 4; k++) sum += a[y * 4 + k] * b[k * 4 + x];
    c[y * 4 + x] = sum;
}