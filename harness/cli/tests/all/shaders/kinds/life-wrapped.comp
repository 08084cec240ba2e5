// --grid 1 --buffer 0.0=random:1024
// Clean: generations in shared memory, two fields.
#version 450
layout(local_size_x = 8, local_size_y = 4) in;
layout(binding = 0) buffer C { uint cells[]; };
shared uint f[2][4][8];
void main() {
    uvec2 p = gl_LocalInvocationID.xy;
    f[0][p.y][p.x] = cells[p.y * 8 + p.x] & 1u;
    barrier();
    for (int g = 0; g < 4; ++g) {
        uint n = 0;
        for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx) {
                if (dx == 0 && dy == 0) continue;
                n += f[g & 1][(int(p.y) + dy) & 3][(int(p.x) + dx) & 7];
            }
        f[1 - (g & 1)][p.y][p.x] = n == 3u || (n == 2u && f[g & 1][p.y][p.x] == 1u) ? 1u : 0u;
        barrier();
    }
    cells[p.y * 8 + p.x] = f[0][p.y][p.x];
}
//~ main: clean
