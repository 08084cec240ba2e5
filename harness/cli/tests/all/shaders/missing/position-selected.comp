#version 450
// expect: needs-inputs
// A selection decides the place.
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };

void main() {
    uint at = gl_GlobalInvocationID.x < 500 ? gl_GlobalInvocationID.x : 0;
    data[at] = gl_GlobalInvocationID.x;
}
