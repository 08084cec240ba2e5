// --inputs auto
#version 450
// The contents depend on the order of atomics, and no schedule races.
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Values { uint values[]; };
layout(std430, binding = 1) buffer Bins { uint bins[]; };
layout(std430, binding = 2) buffer Sums { uint sums[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    atomicAdd(bins[values[i]], 1u);
    if (atomicAdd(bins[i], 0u) > 1u) {
        sums[i] = 1;
    }
}
//~ main: clean in the orders tried
