#version 450
// expect: clean
// The second axis has a bound and no address, as in kernels for one row.
layout(local_size_x = 8) in;
layout(push_constant) uniform P { uint width, height; };
layout(std430, binding = 0) buffer A { uint a[]; };
void main() {
    uint x = gl_GlobalInvocationID.x;
    if (x >= width || gl_GlobalInvocationID.y >= height) return;
    a[x] = x;
}
