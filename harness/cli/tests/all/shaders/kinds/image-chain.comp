// --grid 4 --image 0.0=8x8 --image 0.1=8x8x6
#version 450
layout(local_size_x = 8) in;
layout(binding = 0, r32ui) coherent uniform uimage2D a;
layout(binding = 1, rgba16f) uniform imageCube c;
layout(binding = 2) uniform utextureBuffer t;
layout(binding = 3) buffer O { uint done; uint v[]; };
shared bool last;
void main() {
  ivec2 p = ivec2(gl_LocalInvocationID.x, gl_WorkGroupID.x);
  imageStore(a, p, uvec4(p.x + 1)); //~ race with 17
  imageStore(c, ivec3(p, 2), vec4(1));
  memoryBarrierImage();
  barrier();
  if (gl_LocalInvocationIndex == 0) { memoryBarrier(); last = atomicAdd(done, 1) == gl_NumWorkGroups.x - 1; memoryBarrier(); }
  barrier(); //~ fix: put `memoryBarrierImage();` after this barrier
  if (last) { uint s = 0; for (int y = 0; y < 4; ++y) s += imageLoad(a, ivec2(p.x, y)).x; v[p.x] = s + texelFetch(t, 1).x + imageSize(a).x; }
}
//~ main: racy; mended: clean in the orders tried
