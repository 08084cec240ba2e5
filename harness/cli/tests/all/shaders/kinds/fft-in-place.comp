// --grid 1 --buffer 0.0=floats:512
// Racy: Stockham's permutation in place.
#version 450
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer Signal { vec2 signal[]; };
shared vec2 work[16];
void main() {
    uint l = gl_LocalInvocationID.x;
    work[l] = signal[l];
    work[l + 8u] = signal[l + 8u];
    for (uint span = 1u; span < 16u; span <<= 1u) {
        barrier();
        uint k = l & (span - 1u);
        vec2 a = work[l], b = work[l + 8u]; //~ fix: put `barrier();` after this line
        uint to = ((l - k) << 1u) + k;
        work[to] = a + b;
        work[to + span] = a - b; //~ race with 14
    }
    barrier();
    signal[l] = work[l];
    signal[l + 8u] = work[l + 8u];
}
//~ main: racy; mended: clean
