#version 450
// args: --assert data[1]==2
// expect: assertion
layout(local_size_x = 4) in;
layout(binding = 0) buffer Data { uint data[]; };
void main() { data[gl_LocalInvocationID.x] = 1; }
