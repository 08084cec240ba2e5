// --grid 2 --image 0.0=16x8,fill=floats
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, rgba8) uniform image2D picture;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    vec4 left = imageLoad(picture, ivec2(max(at.x - 1, 0), at.y));
    imageStore(picture, at, 0.5 * (left + imageLoad(picture, at))); //~ race with 7, without a fix
}
//~ main: racy
