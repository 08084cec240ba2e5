// --grid 1 --buffer 0.0=floats:256
// Racy: the factor is read while its column is cleared.
#version 450
layout(local_size_x = 4, local_size_y = 4) in;
layout(binding = 0) buffer A { float a[]; };
shared float m[4][4];
void main() {
    uint r = gl_LocalInvocationID.y, c = gl_LocalInvocationID.x;
    m[r][c] = a[r * 4 + c] + (r == c ? 8.0 : 0.0);
    barrier();
    for (uint p = 0; p < 3; p++) {
        if (r > p) m[r][c] -= m[r][p] / m[p][p] * m[p][c]; //~ race, without a fix
        barrier();
    }
    a[r * 4 + c] = m[r][c];
}
//~ main: racy
