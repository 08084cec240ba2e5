#version 450
// expect: needs-inputs
// Workgroups share a slot from the ninth on.
layout(local_size_x = 32) in;
layout(binding = 0) buffer Data { uint sums[]; };

void main() {
    uint slot = gl_WorkGroupID.x & 7;
    if (gl_LocalInvocationIndex == 0) {
        sums[slot] = sums[slot] + 1;
    }
}
