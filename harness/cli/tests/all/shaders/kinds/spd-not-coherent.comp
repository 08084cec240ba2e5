// --grid 2,2 --image 0.0=8x8,fill=floats --image 0.2=2x2 --image 0.3=1x1
// Racy: the image that the last workgroup reads is not coherent.
#version 450
layout(local_size_x = 2, local_size_y = 2) in;
layout(binding = 0, rgba8) uniform readonly image2D src;
layout(binding = 2, rgba8) uniform image2D mip2;
layout(binding = 3, rgba8) uniform writeonly image2D mip3;
layout(binding = 4) coherent buffer C { uint counter; };
shared vec4 tile[2][2];
shared uint ticket;
void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy), l = ivec2(gl_LocalInvocationID.xy);
    tile[l.y][l.x] = imageLoad(src, p * 2);
    barrier();
    if (gl_LocalInvocationIndex == 0) {
        imageStore(mip2, ivec2(gl_WorkGroupID.xy), tile[0][0] + tile[1][1]); //~ race with 23; unpublished-read with 23; fix: declare `mip2` coherent
        memoryBarrier();
        ticket = atomicAdd(counter, 1u);
        memoryBarrier();
    }
    barrier(); //~ fix: put `memoryBarrierImage();` after this barrier
    if (ticket != 3u) return;
    tile[l.y][l.x] = imageLoad(mip2, l);
    barrier();
    if (gl_LocalInvocationIndex == 0) imageStore(mip3, ivec2(0), tile[0][0] + tile[0][1]);
}
//~ main: racy; mended: clean in the orders tried
