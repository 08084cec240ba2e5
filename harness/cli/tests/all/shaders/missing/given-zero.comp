#version 450
// args: --push 0=0 --grid 1
// expect: division by zero
// What the caller gives is no assumption.
layout(local_size_x = 4) in;
layout(push_constant) uniform Shape { uint width; };
layout(binding = 0) buffer Data { uint data[]; };
void main() { uint i = gl_LocalInvocationID.x; data[i] = i / width; }
