#version 450
// The Collatz steps of rust-gpu's compute example.
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer B0 { uint data[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint n = data[i];
    uint count = 0u;
    while (n != 1u) { n = (n & 1u) == 0u ? n / 2u : 3u * n + 1u; count += 1u; }
    data[i] = count;
}
