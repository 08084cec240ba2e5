// --grid 2 --image 0.0=8x2
// Clean.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0, r32ui) uniform coherent uimage2D img;
layout(binding = 1) writeonly buffer O { uint o[]; };
void main() {
    ivec2 p = ivec2(gl_LocalInvocationID.x, gl_WorkGroupID.x);
    imageStore(img, p, uvec4(p.x));
    memoryBarrierImage();
    barrier();
    memoryBarrierImage();
    o[gl_GlobalInvocationID.x] = imageLoad(img, ivec2(7 - p.x, p.y)).x;
}
//~ main: clean
