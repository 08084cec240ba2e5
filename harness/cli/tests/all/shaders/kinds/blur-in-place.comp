// --grid 2,2 --image 0.0=16x16,fill=floats
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, rgba8) uniform image2D picture;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    vec4 left = imageLoad(picture, max(at - ivec2(1, 0), ivec2(0)));
    imageStore(picture, at, 0.5 * left + 0.5 * imageLoad(picture, at)); //~ race with 7, without a fix
}
//~ main: racy
