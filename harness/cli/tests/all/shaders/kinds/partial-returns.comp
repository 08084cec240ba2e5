// --grid 2 --push 0=20
// A divergent barrier: the second workgroup returns in part.
#version 450
layout(local_size_x = 16) in;
layout(push_constant) uniform P { uint n; };
layout(std430, binding = 0) buffer Data { float data[]; };
shared float part[16];
void main() {
    uint i = gl_GlobalInvocationID.x, l = gl_LocalInvocationID.x;
    if (i >= n) return; //~ fix: move this `return` after the last barrier, and guard the code before that by a condition
    part[l] = data[i];
    barrier(); //~ divergent-barrier with 10
    data[i] = part[l] + part[l ^ 1u];
}
//~ main: racy; mended: clean
