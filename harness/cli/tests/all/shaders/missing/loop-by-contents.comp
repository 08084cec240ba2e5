#version 450
// expect: clean
// The loop is entered for small numbers only: 0 and 1 skip it, and large ones do not end in time.
layout(local_size_x = 1) in;
layout(binding = 0) buffer Numbers { uint values[]; } numbers;
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint n = numbers.values[i], product = 1;
    for (uint factor = 2; factor <= n; factor++) {
        product *= factor;
    }
    numbers.values[i] = product;
}
