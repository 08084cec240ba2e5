// --seed 0
// Clean for every size of the image.
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, r32f) uniform image2D picture;
void main() {
    ivec2 size = imageSize(picture), at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, size))) return;
    imageStore(picture, size - 1 - at, 2.0 * imageLoad(picture, size - 1 - at));
}
//~ main: clean
