#version 450
// expect: clean
// args: --grid 781253 --workgroup 0 --workgroup 1
layout(local_size_x = 128) in;
layout(binding = 0) buffer Data { uint data[]; };
void main() {
    data[gl_GlobalInvocationID.x % 100000000u] = gl_GlobalInvocationID.x;
}
