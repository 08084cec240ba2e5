// --grid 4
// The first invocation writes far beyond the end of any buffer.
#version 460
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Out { uint data[]; };

void main() {
    uint me = gl_GlobalInvocationID.x;
    data[me - 1u] = me; //~ out-of-bounds, without a fix
}
//~ main: racy
