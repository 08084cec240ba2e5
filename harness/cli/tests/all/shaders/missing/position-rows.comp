#version 450
// expect: clean
// Column and row together are one place for each position.
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };

void main() {
    uint column = gl_GlobalInvocationID.x % 100;
    uint row = gl_GlobalInvocationID.x / 100;
    data[row * 100 + column] = gl_GlobalInvocationID.x;
}
