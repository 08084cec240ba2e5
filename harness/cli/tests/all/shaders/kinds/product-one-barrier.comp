// --grid 2,2 --push 0=32 --push 4=32 --push 8=32
#version 450
#define TILE 16
layout(local_size_x = TILE, local_size_y = TILE) in;
layout(push_constant) uniform P { uint M, N, K; };
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer C { float c[]; };
shared float ta[TILE][TILE];
shared float tb[TILE][TILE];
void main() {
    uint row = gl_GlobalInvocationID.y, col = gl_GlobalInvocationID.x;
    uint ly = gl_LocalInvocationID.y, lx = gl_LocalInvocationID.x;
    float acc = 0.0;
    for (uint t = 0; t < (K + TILE - 1) / TILE; ++t) {
        ta[ly][lx] = (row < M && t * TILE + lx < K) ? a[row * K + t * TILE + lx] : 0.0; //~ race with 19; fix: put `barrier();` before this line
        tb[ly][lx] = (col < N && t * TILE + ly < K) ? b[(t * TILE + ly) * N + col] : 0.0; //~ race with 19
        barrier();
        for (uint k = 0; k < TILE; ++k) acc += ta[ly][k] * tb[k][lx];
    }
    if (row < M && col < N) c[row * N + col] = acc;
}
//~ main: racy; mended: clean
