// --grid 1
// Racy: two barriers in two branches are two, not one.
#version 450
layout(local_size_x = 8) in;
layout(std430, binding = 0) writeonly buffer Out { uint result[]; };
shared uint v[8];
void main() {
    uint l = gl_LocalInvocationID.x;
    if (l < 4u) { v[l] = l; barrier(); } else { v[l] = 2u * l; barrier(); } //~ divergent-barrier; race with 10; fix: move the barriers of both branches out of this `if`
    result[l] = v[7u - l];
}
//~ main: racy; mended: clean
