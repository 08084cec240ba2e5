#version 450
// expect: clean
layout(local_size_x = 16) in;
layout(push_constant) uniform Size { uint rows; uint columns; };
layout(binding = 0) readonly buffer Source { float source[]; };
layout(binding = 1) writeonly buffer Target { float target[]; };
void main() {
    uint row = gl_GlobalInvocationID.x;
    if (row >= rows) return;
    float sum = 0.0;
    for (uint column = 0; column < columns; ++column)
        sum += source[row * columns + column];
    target[row] = sum;
}
