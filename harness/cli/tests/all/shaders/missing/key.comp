#version 450
#extension GL_EXT_buffer_reference : require
// expect: needs-inputs
// args: -D UNIFORM
// Only one key of an input reaches the store; a macro decides which input has it.
layout(local_size_x = 8) in;
#if defined(UNIFORM)
layout(std140, binding = 1) uniform U { uint key; };
#elif defined(BUFFER)
layout(std430, binding = 1) buffer K { uint keys[]; };
#define key keys[2]
#elif defined(IMAGE)
layout(r32ui, binding = 1) uniform uimage2D picture;
#define key imageLoad(picture, ivec2(1)).x
#elif defined(CONSTANT)
layout(constant_id = 3) const uint key = 5;
#elif defined(ADDRESS)
layout(buffer_reference, std430) buffer R { uint keys[]; };
layout(push_constant) uniform P { R at; };
#define key at.keys[2]
#endif
layout(std430, binding = 0) buffer A { uint a[]; };
void main() {
    if ((key ^ key >> 7) * 0x9E3779B9u == 0x12345677u)
        a[0] = gl_GlobalInvocationID.x;
}
