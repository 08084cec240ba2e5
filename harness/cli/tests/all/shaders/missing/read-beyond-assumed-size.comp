// What is read beyond the assumed size are contents that nobody gave.
// expect: needs-inputs
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) readonly buffer Places { uint places[]; };
void main() {
    data[places[(1u << 28) + gl_GlobalInvocationID.x] & 1023u] = gl_GlobalInvocationID.x;
}
