#version 450
// expect: clean
// Each workgroup stores a range that a table gives. The chosen table has ranges that do not overlap.
layout(local_size_x = 8) in;
layout(push_constant) uniform P { uint base; };
layout(std430, binding = 0) readonly buffer Table { uint start[]; };
layout(std430, binding = 1) buffer Out { uint stored[]; };
void main() {
    stored[base + start[gl_WorkGroupID.x] + gl_LocalInvocationIndex] = gl_WorkGroupID.x;
}
