#version 450
// A match on a condition and its value.
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer B0 { uint data[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    bool is_some = data[i] > 2u;
    uint value = is_some ? data[i] : 7u;
    data[i] = value * 2u + uint(is_some);
}
