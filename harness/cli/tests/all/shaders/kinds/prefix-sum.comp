// --grid 3
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint values[]; };
shared uint a[64], b[64];
void main() {
    uint lane = gl_LocalInvocationIndex, at = gl_GlobalInvocationID.x;
    a[lane] = values[at];
    barrier();
    for (uint step = 1; step < 64; step *= 2) {
        b[lane] = lane >= step ? a[lane] + a[lane - step] : a[lane];
        barrier();
        a[lane] = b[lane];
        barrier();
    }
    values[at] = a[lane];
}
//~ main: clean
