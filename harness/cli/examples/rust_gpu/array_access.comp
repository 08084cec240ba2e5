#version 450
// An array by a value from memory.
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer B0 { uint data[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint table[4] = uint[4](10u, 20u, 30u, 40u);
    data[i] = table[data[i] % 4u] + table[3u - i];
}
