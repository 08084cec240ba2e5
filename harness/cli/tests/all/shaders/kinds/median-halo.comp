// --grid 2 --buffer 0.0=random:512
#version 450
layout(local_size_x = 16) in;
layout(binding = 0) readonly buffer In { uint texels[]; };
layout(binding = 1) writeonly buffer Out { uint result[]; };
shared uint tile[18];
void main() {
    uint l = gl_LocalInvocationIndex, g = gl_GlobalInvocationID.x; //~ fix: clear `tile` before this line, and wait: `barrier();`
    tile[l + 1] = texels[g + 1];
    if (l == 0) tile[0] = texels[g];
    barrier();
    uint w[3] = uint[3](tile[l], tile[l + 1], tile[l + 2]);
    for (int i = 0; i < 2; ++i) for (int j = 0; j < 2 - i; ++j) if (w[j] > w[j + 1]) { uint t = w[j]; w[j] = w[j + 1]; w[j + 1] = t; } //~ uninitialised-read
    result[g] = w[1];
}
//~ main: racy; mended: clean
