// --grid 2 --subgroup-size 32
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer In { float values[]; };
layout(binding = 1) buffer Out { float sums[]; };
shared float scratch[64];
void main() {
    uint lane = gl_LocalInvocationIndex;
    scratch[lane] = values[gl_GlobalInvocationID.x];
    barrier();
    if (lane < 32) { //~ fix: give each round of this reduction its own lanes, and a barrier after it
        scratch[lane] += scratch[lane + 32];
        scratch[lane] += scratch[lane + 16];
        scratch[lane] += scratch[lane + 8]; //~ lockstep with 12
    }
    if (lane == 0) sums[gl_WorkGroupID.x] = scratch[0];
}
//~ main: racy; mended: clean
