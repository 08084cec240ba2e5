// expect: needs-inputs
// args: --push p.w=4
// A grid wider than the given width lets workgroups meet; only the proof finds it.
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(push_constant) uniform P { uint w; } p;
layout(set = 0, binding = 0) buffer O { uint o[]; };
void main() {
    if (gl_LocalInvocationIndex == 0) o[gl_WorkGroupID.x + gl_WorkGroupID.y * p.w] = 1 + gl_WorkGroupID.x;
}
