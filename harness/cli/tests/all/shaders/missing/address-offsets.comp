#version 460
#extension GL_EXT_buffer_reference : require
// expect: needs-inputs
// The contents behind an address are places, of which zeros are all equal.
layout(local_size_x = 16) in;
layout(buffer_reference, std430) buffer Numbers { uint number[]; };
layout(push_constant) uniform Where { Numbers places; Numbers to; };
void main() { uint i = gl_GlobalInvocationID.x; to.number[places.number[i] & 7u] = i; }
