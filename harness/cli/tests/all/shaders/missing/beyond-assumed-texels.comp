// The same in a texel buffer.
// expect: racy
#version 450
layout(local_size_x = 64) in;
layout(binding = 0, r32ui) uniform uimageBuffer data;
void main() {
    imageStore(data, int((1u << 16) + gl_GlobalInvocationID.x / 2u), uvec4(gl_GlobalInvocationID.x));
}
