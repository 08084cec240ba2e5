// --seed 0
// Racy: of a larger image, the grid covers a corner only, and its invocations never meet.
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, r32f) uniform image2D picture;
void main() {
    ivec2 size = imageSize(picture), at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, size))) return;
    vec4 mirrored = imageLoad(picture, ivec2(size.x - 1 - at.x, at.y));
    imageStore(picture, at, mirrored); //~ race with 9, without a fix
}
//~ main: racy
