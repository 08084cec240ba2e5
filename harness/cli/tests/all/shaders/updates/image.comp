// --grid 2
// fix: use `imageAtomicMax` instead of this load and store
// The largest number of all invocations in one texel.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0, r32i) uniform iimage2D most;
void main() {
    ivec2 at = ivec2(3, 2);
    imageStore(most, at, ivec4(max(imageLoad(most, at).x, int(gl_GlobalInvocationID.x)), 0, 0, 0));
}
