#version 450
// expect: clean
// Workgroups that share atomics alone, with any grid.
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer A { uint total; };
void main() {
    atomicAdd(total, 1);
}
