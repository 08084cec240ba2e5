#version 450
// expect: clean
layout(local_size_x = 16) in;
layout(binding = 0) uniform Shape { uint group; };
layout(binding = 1) buffer Out { uint out_[]; };
void main() { uint i = gl_GlobalInvocationID.x; out_[i] = i / group + i % group; }
