// --grid 2 --push 0=20
// Clean: who is beyond the end goes to the barrier too.
#version 450
layout(local_size_x = 16) in;
layout(push_constant) uniform P { uint n; };
layout(std430, binding = 0) buffer Data { float data[]; };
shared float part[16];
void main() {
    uint i = gl_GlobalInvocationID.x, l = gl_LocalInvocationID.x;
    part[l] = i < n ? data[i] : 0.0;
    barrier();
    if (i < n) data[i] = part[l] + part[l ^ 1u];
}
//~ main: clean
