#version 460
#extension GL_EXT_buffer_reference : require
// expect: racy
// The contents behind an address decide the store.
layout(local_size_x = 16) in;
layout(buffer_reference, std430) buffer Numbers { uint number[]; };
layout(push_constant) uniform Where { Numbers modes; Numbers to; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (modes.number[i] != 0) to.number[0] = i;
}
