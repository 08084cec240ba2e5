// --grid 2 --buffer 0.0=iota:256
// Uninitialised: the halo of the right end decides and nobody wrote it.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer I { uint x[]; };
layout(binding = 1) writeonly buffer O { uint o[]; };
shared uint tile[9];
void main() {
    uint t = gl_LocalInvocationID.x; //~ fix: clear `tile` before this line, and wait: `barrier();`
    tile[t] = x[gl_GlobalInvocationID.x];
    barrier();
    if (tile[t + 1] > tile[t]) o[gl_GlobalInvocationID.x] = 1; //~ uninitialised-read
}
//~ main: racy; mended: clean
