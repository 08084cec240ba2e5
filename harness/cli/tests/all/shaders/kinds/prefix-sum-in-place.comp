// --grid 1
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint values[]; };
shared uint a[64];
void main() {
    uint lane = gl_LocalInvocationIndex, at = gl_GlobalInvocationID.x;
    a[lane] = values[at];
    barrier();
    for (uint step = 1; step < 64; step *= 2) {
        uint left = 0;
        if (lane >= step) left = a[lane - step];
        a[lane] += left; //~ race with 12; fix: put `barrier();` before this line
        barrier();
    }
    values[at] = a[lane];
}
//~ main: racy; mended: clean
