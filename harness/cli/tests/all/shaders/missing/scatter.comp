#version 450
// expect: clean
// The order of the elements is contents of a buffer: zeros would send all to one place.
layout(local_size_x = 16) in;
layout(binding = 0) readonly buffer Order { uint order[]; };
layout(binding = 1) buffer Out { uint out_[]; };
void main() { uint i = gl_GlobalInvocationID.x; out_[order[i]] = i; }
