#version 450
// expect: needs-inputs
// All positions behind the last element write it.
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };

void main() {
    data[min(gl_GlobalInvocationID.x, 999)] = gl_GlobalInvocationID.x;
}
