// --grid 1
#version 450
// Stores of one value race; those of the second line leave other values.
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint same; uint other; };

void main() {
    same = 1;
    other = gl_LocalInvocationID.x / 2u;
}
