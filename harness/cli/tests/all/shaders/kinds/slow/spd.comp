// --grid 2,2 --image 0.0=8x8,fill=floats --image 0.1=4x4 --image 0.2=2x2 --image 0.3=1x1
// Racy: the memory barriers are of images and of buffers, and the counter that is to publish the image is in a buffer; and it is reset by a plain write.
#version 450
layout(local_size_x = 2, local_size_y = 2) in;
layout(binding = 0, rgba8) uniform readonly image2D src;
layout(binding = 1, rgba8) uniform writeonly image2D mip1;
layout(binding = 2, rgba8) uniform coherent image2D mip2;
layout(binding = 3, rgba8) uniform writeonly image2D mip3;
layout(binding = 4) coherent buffer C { uint counter; };
shared vec4 tile[2][2];
shared uint ticket;
vec4 four(ivec2 p) {
    return (imageLoad(src, p * 2) + imageLoad(src, p * 2 + ivec2(1, 0)) + imageLoad(src, p * 2 + ivec2(0, 1)) + imageLoad(src, p * 2 + 1)) * 0.25;
}
void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy), l = ivec2(gl_LocalInvocationID.xy);
    vec4 v = four(p);
    imageStore(mip1, p, v);
    tile[l.y][l.x] = v;
    barrier();
    if (gl_LocalInvocationIndex == 0) {
        vec4 w = (tile[0][0] + tile[0][1] + tile[1][0] + tile[1][1]) * 0.25;
        imageStore(mip2, ivec2(gl_WorkGroupID.xy), w); //~ race with 32
        memoryBarrierImage();
        memoryBarrierBuffer();
        ticket = atomicAdd(counter, 1u); //~ race with 36; fix: put `memoryBarrier();` before this atomic
        memoryBarrier();
    }
    barrier();
    if (ticket != 3u) return;
    memoryBarrierImage();
    tile[l.y][l.x] = imageLoad(mip2, l);
    barrier();
    if (gl_LocalInvocationIndex == 0) {
        imageStore(mip3, ivec2(0), (tile[0][0] + tile[0][1] + tile[1][0] + tile[1][1]) * 0.25);
        counter = 0; //~ fix: use `atomicExchange` for this store, which several invocations may make
    }
}
//~ main: racy; mended: clean in the orders tried
