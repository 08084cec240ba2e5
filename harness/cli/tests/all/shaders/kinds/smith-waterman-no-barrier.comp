// --grid 1 --buffer 0.0=random:64 --buffer 0.1=random:64
// Racy: no barrier between diagonals.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer A { uint a[]; };
layout(binding = 1) readonly buffer B { uint b[]; };
layout(binding = 2) buffer H { int best; };
shared int h[9][9];
void main() {
    uint t = gl_LocalInvocationID.x;
    h[t + 1][0] = 0;
    h[0][t + 1] = 0;
    if (t == 0) h[0][0] = 0;
    int mine = 0;
    barrier();
    for (uint d = 0; d < 15; d++) {
        uint j = d - t;
        if (t <= d && j < 8) { //~ fix: put `barrier();` before this line
            int m = (a[t] & 3u) == (b[j] & 3u) ? 2 : -1;
            int v = max(0, max(h[t][j] + m, max(h[t][j + 1], h[t + 1][j]) - 1));
            h[t + 1][j + 1] = v; //~ race with 20
            mine = max(mine, v);
        }
    }
    atomicMax(best, mine);
}
//~ main: racy; mended: clean
