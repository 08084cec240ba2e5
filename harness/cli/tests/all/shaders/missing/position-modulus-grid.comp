#version 450
// args: --grid 5
// expect: racy
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint data[]; };

void main() {
    data[gl_GlobalInvocationID.x % 256] = gl_WorkGroupID.x;
}
