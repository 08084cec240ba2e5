#version 450
// expect: needs-inputs
// Positions coincide in a grid of which a walk cannot run all workgroups.
layout(local_size_x = 128) in;
layout(binding = 0) buffer Data { uint data[]; };
void main() {
    data[gl_GlobalInvocationID.x % 100000000u] = gl_GlobalInvocationID.x;
}
