// --inputs auto
// Uninitialised: nothing writes the last element of the tile, and its sum leaves the workgroup.
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer In { float x[]; };
layout(binding = 1) writeonly buffer Out { float y[]; };
shared float tile[33];
void main() {
    uint lane = gl_LocalInvocationID.x, i = gl_GlobalInvocationID.x; //~ fix: clear `tile` before this line, and wait: `barrier();`
    tile[lane] = x[i];
    barrier();
    y[i] = 0.5 * (tile[lane] + tile[lane + 1u]); //~ uninitialised-read
}
//~ main: racy; mended: clean
