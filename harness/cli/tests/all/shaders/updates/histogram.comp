// --grid 2 --buffer 0.0=iota:1024
// fix: use `atomicAdd` instead of this load and store
// A histogram without atomics.
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer In { uint x[]; };
layout(binding = 1) buffer Bins { uint bins[8]; };
void main() {
    bins[x[gl_GlobalInvocationID.x] & 7u] += 1;
}
