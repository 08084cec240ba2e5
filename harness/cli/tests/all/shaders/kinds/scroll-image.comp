// --seed 0
// A distance of 0 lets each invocation access its own texel.
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, r32f) uniform image2D picture;
layout(push_constant) uniform P { int distance; } p;
void main() {
    ivec2 size = imageSize(picture), at = ivec2(gl_GlobalInvocationID.xy);
    if (at.x >= size.x) return;
    vec4 other = imageLoad(picture, ivec2((at.x + p.distance) % size.x, at.y));
    imageStore(picture, at, other);
}
//~ main: needs-inputs
