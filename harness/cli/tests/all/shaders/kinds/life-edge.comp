// --grid 1 --buffer 0.0=random:1024
// Out of bounds: the left neighbour of column 0 wraps below zero.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) buffer C { uint cells[]; };
shared uint f[8];
void main() {
    uint p = gl_LocalInvocationID.x;
    f[p] = cells[p] & 1u;
    barrier();
    uint n = f[p - 1] + f[p + 1]; //~ out-of-bounds, without a fix
    cells[p] = n;
}
//~ main: racy
