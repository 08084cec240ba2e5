#version 450
// args: --grid 1 --assert 0.0[3]==1
// expect: clean
layout(local_size_x = 4) in;
layout(binding = 0) buffer Data { uint data[]; };
void main() { data[gl_LocalInvocationID.x] = 1; }
