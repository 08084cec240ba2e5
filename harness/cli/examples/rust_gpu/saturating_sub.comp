#version 450
// A subtraction that stops at zero.
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer B0 { uint data[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint n = data[i];
    data[i] = n - min(n, 3u);
}
