#version 450
// expect: needs-inputs
// Layers have a counter each and share a picture, which is right for one layer.
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer Layers { uint layer[]; };
layout(std430, binding = 1) buffer Picture { uint picture[]; };
void main() {
    picture[gl_GlobalInvocationID.x] = gl_WorkGroupID.z;
    if (gl_LocalInvocationIndex == 0) atomicAdd(layer[gl_WorkGroupID.z], 1);
}
