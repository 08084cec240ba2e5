// --inputs auto
// Racy for all indices: each store of the tile races with the load.
#version 450
layout(local_size_x = 32) in;
layout(push_constant) uniform Size { uint bones; };
layout(binding = 0) readonly buffer In { float x[]; };
layout(binding = 1) readonly buffer Index { uint index[]; };
layout(binding = 2) writeonly buffer Out { float y[]; };
shared float tile[32];
void main() {
    uint lane = gl_LocalInvocationID.x, i = gl_GlobalInvocationID.x;
    if (lane < bones) tile[lane] = x[lane]; else tile[lane] = 1.0; //~ race with 13; fix: put `barrier();` after the statement that this line controls
    y[i] = tile[index[i >> 1] & 31u];
}
//~ main: racy; mended: clean
