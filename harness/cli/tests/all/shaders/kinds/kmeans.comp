// --grid 2 --buffer 0.0=floats:512 --buffer 0.1=floats:64
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer P { vec2 points[]; };
layout(binding = 1) readonly buffer C { vec2 centres[4]; };
layout(binding = 2) buffer Sums { int sums[12]; };
shared int local[12];
void main() {
    uint l = gl_LocalInvocationIndex;
    if (l < 12) local[l] = 0;
    barrier();
    vec2 p = points[gl_GlobalInvocationID.x];
    uint best = 0;
    for (uint c = 1; c < 4; ++c) if (distance(p, centres[c]) < distance(p, centres[best])) best = c;
    atomicAdd(local[best * 3], int(p.x * 256)); atomicAdd(local[best * 3 + 1], int(p.y * 256)); atomicAdd(local[best * 3 + 2], 1);
    barrier();
    if (l < 12) atomicAdd(sums[l], local[l]);
}
//~ main: clean
