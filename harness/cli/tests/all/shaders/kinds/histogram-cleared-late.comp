// --inputs auto
#version 450
layout(local_size_x = 256) in;
layout(std430, binding = 0) readonly buffer I { uint px[]; };
layout(std430, binding = 1) buffer H { uint hist[256]; };
shared uint h[256];
void main() {
    uint i = gl_LocalInvocationIndex;
    h[i] = 0u; //~ race with 10; fix: put `barrier();` after this line
    atomicAdd(h[px[gl_GlobalInvocationID.x] & 255u], 1u);
    barrier();
    atomicAdd(hist[i], h[i]);
}
//~ main: racy; mended: clean
