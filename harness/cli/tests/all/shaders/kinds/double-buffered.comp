// --grid 2 --buffer 0.0=floats:1024 --buffer 0.1=floats:1024
// Clean: the next tile is fetched while this one is used, one barrier a tile.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer C { float c[]; };
shared float tile[2][8];
void main() {
    uint t = gl_LocalInvocationID.x;
    float sum = 0;
    tile[0][t] = a[t];
    barrier();
    for (uint k = 0; k < 4; k++) {
        if (k < 3) tile[(k + 1) & 1][t] = a[(k + 1) * 8 + t];
        for (uint j = 0; j < 8; j++) sum += tile[k & 1][j] * b[k * 8 + j];
        barrier();
    }
    c[gl_GlobalInvocationID.x] = sum;
}
//~ main: clean
