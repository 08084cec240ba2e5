// --grid 2,2 --buffer 0.0=random:4096
#version 450
layout(local_size_x = 16, local_size_y = 4) in;
layout(binding = 0) readonly buffer In { uint a[]; };
layout(binding = 1) writeonly buffer Out { uint b[]; };
shared uint tile[16][17];
void main() {
    uvec2 g = gl_WorkGroupID.xy * 16, l = gl_LocalInvocationID.xy;
    for (uint y = l.y; y < 16; y += 4) tile[y][l.x] = a[(g.y + y) * 32 + g.x + l.x];
    barrier();
    for (uint y = l.y; y < 16; y += 4) b[(g.x + y) * 32 + g.y + l.x] = tile[l.x][y];
}
//~ main: clean
