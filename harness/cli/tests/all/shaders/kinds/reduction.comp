// --grid 4 --subgroup-size 32
#version 450
layout(local_size_x = 128) in;
layout(binding = 0) readonly buffer In { float values[]; };
layout(binding = 1) buffer Out { float sums[]; };
shared float scratch[128];
void main() {
    uint lane = gl_LocalInvocationIndex;
    scratch[lane] = values[gl_GlobalInvocationID.x];
    barrier();
    for (uint step = 64; step > 0; step >>= 1) {
        if (lane < step) scratch[lane] += scratch[lane + step];
        barrier();
    }
    if (lane == 0) sums[gl_WorkGroupID.x] = scratch[0];
}
//~ main: clean
