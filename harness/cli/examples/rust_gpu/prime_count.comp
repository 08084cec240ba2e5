#version 450
// Trial division.
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer B0 { uint data[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint n = data[i];
    bool is_prime = n > 1u;
    for (uint k = 2u; k * k <= n; ++k) { if (n % k == 0u) { is_prime = false; break; } }
    data[i] = uint(is_prime);
}
