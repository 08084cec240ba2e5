#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 8) in;
layout(buffer_reference, std430) buffer Words { uint words[]; };
layout(push_constant) uniform Push { uint scale; Words behind; };
layout(set = 0, binding = 0) buffer First { uint first[]; };
layout(set = 1, binding = 0) buffer Second { uint second[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    second[i] = first[i] * scale + behind.words[i];
}
