#version 460
#extension GL_EXT_buffer_reference : require
// expect: clean
layout(local_size_x = 8) in;
layout(buffer_reference, std430) buffer Numbers { uint number[]; };
layout(push_constant) uniform Where { Numbers from; Numbers to; };
void main() { uint i = gl_GlobalInvocationID.x; to.number[i] = from.number[i] + 1; }
