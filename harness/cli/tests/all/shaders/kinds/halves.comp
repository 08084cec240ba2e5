// --grid 2
// Clean: components of one vector.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) writeonly buffer B { vec4 v[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    v[i >> 2][i & 3u] = float(i);
}
//~ main: clean
