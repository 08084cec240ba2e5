#version 450
// Nested control flow.
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer B0 { uint data[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint total = 0u;
    for (uint k = 0u; k < data[i]; ++k) {
        if (k == 2u) { continue; }
        if (k > 6u) { break; }
        total += k * i;
    }
    data[i] = total;
}
