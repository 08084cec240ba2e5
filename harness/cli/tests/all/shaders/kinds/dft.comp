// --grid 1 --buffer 0.0=floats:512
// Clean: Stockham FFT of 16 points in shared memory with two buffers.
#version 450
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer Signal { vec2 signal[]; };
shared vec2 work[2][16];
vec2 mul(vec2 a, vec2 b) { return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
void main() {
    uint l = gl_LocalInvocationID.x, cur = 0u;
    work[0][l] = signal[l];
    work[0][l + 8u] = signal[l + 8u];
    for (uint span = 1u; span < 16u; span <<= 1u) {
        barrier();
        uint k = l & (span - 1u);
        float angle = -3.14159265 * float(k) / float(span);
        vec2 a = work[cur][l], b = mul(work[cur][l + 8u], vec2(cos(angle), sin(angle)));
        uint to = ((l - k) << 1u) + k;
        cur ^= 1u;
        work[cur][to] = a + b;
        work[cur][to + span] = a - b;
    }
    barrier();
    signal[l] = work[cur][l];
    signal[l + 8u] = work[cur][l + 8u];
}
//~ main: clean
