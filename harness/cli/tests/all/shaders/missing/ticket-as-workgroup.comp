#version 450
// expect: needs-inputs
// A workgroup takes its position from a counter, so that workgroups differ although none reads its id.
layout(local_size_x = 64) in;
layout(binding = 0) buffer O { uint o[]; };
layout(binding = 1) buffer C { uint next; };
shared uint position;
void main() {
    uint l = gl_LocalInvocationID.x;
    if (l == 0) position = atomicAdd(next, 1);
    barrier();
    o[position / 2 * 64 + l] = position;
}
