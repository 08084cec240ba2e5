// --grid 2,2
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform Push { uint size; };
shared float ta[8][8], tb[8][9];
void main() {
    uint n = size == 0 ? 16 : size;
    uvec2 at = gl_GlobalInvocationID.xy, lane = gl_LocalInvocationID.xy;
    float sum = 0;
    for (uint tile = 0; tile < n / 8; tile++) {
        ta[lane.y][lane.x] = a[at.y * n + tile * 8 + lane.x]; //~ race with 17; fix: put `barrier();` before this line
        tb[lane.y][lane.x] = b[(tile * 8 + lane.y) * n + at.x]; //~ race with 17
        barrier();
        for (uint k = 0; k < 8; k++) sum = fma(ta[lane.y][k], tb[k][lane.x], sum);
    }
    c[at.y * n + at.x] = sum;
}
//~ main: racy; mended: clean
