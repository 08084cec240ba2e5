#version 450
layout(local_size_x = 8) in;
layout(push_constant) uniform Push { uint first; };
layout(set = 0, binding = 0) readonly buffer From { uint from[]; };
layout(set = 0, binding = 1) buffer To { uint to[]; };
void main() {
    uint i = first + gl_GlobalInvocationID.x;
    to[i] = from[i] + 1;
}
