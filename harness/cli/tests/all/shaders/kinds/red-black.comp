// --grid 1 --buffer 0.0=floats:1024
// Clean: Gauss-Seidel by colours, a barrier after each.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) buffer X { float x[]; };
shared float s[10];
void main() {
    uint t = gl_LocalInvocationID.x;
    s[t + 1] = x[t];
    if (t == 0) { s[0] = 0.0; s[9] = 0.0; }
    barrier();
    for (uint i = 0; i < 3; i++) {
        if ((t & 1u) == 0u) s[t + 1] = 0.5 * (s[t] + s[t + 2]);
        barrier();
        if ((t & 1u) == 1u) s[t + 1] = 0.5 * (s[t] + s[t + 2]);
        barrier();
    }
    x[t] = s[t + 1];
}
//~ main: clean
