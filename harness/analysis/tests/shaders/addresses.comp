#version 450
#extension GL_EXT_buffer_reference : require
// Two addresses in push constants, and an image: who writes what depends on what they are bound to.
layout(local_size_x = 4) in;
layout(buffer_reference, std430) buffer Data { uint values[]; };
layout(push_constant) uniform Push { uint n; Data a; Data b; } pc;
layout(set = 0, binding = 0, r32ui) uniform uimage2D img;

void main() {
    uint i = gl_GlobalInvocationID.x;
    pc.a.values[i] = i;
    uint next = pc.b.values[i + 1u];
    imageStore(img, ivec2(i, 0), uvec4(next));
}
