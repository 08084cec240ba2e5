// --grid 1 --buffer 0.0=floats:1024
// Clean.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) buffer X { vec2 x[]; };
shared vec2 s[2][16];
vec2 mul(vec2 a, vec2 b) { return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
void main() {
    uint t = gl_LocalInvocationID.x, from = 0;
    s[0][t] = x[t];
    s[0][t + 8] = x[t + 8];
    for (uint n = 1; n < 16; n <<= 1) {
        barrier();
        uint k = t & (n - 1);
        float angle = -3.14159265 * float(k) / float(n);
        vec2 a = s[from][t], b = mul(s[from][t + 8], vec2(cos(angle), sin(angle)));
        uint to = (t - k) * 2 + k;
        s[1 - from][to] = a + b;
        s[1 - from][to + n] = a - b;
        from = 1 - from;
    }
    barrier();
    x[t] = s[from][t];
    x[t + 8] = s[from][t + 8];
}
//~ main: clean
