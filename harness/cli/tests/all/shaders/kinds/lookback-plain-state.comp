// --grid 3 --buffer 0.0=random:256
// Racy: the state of a tile is polled by plain reads of a volatile buffer.
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) readonly buffer I { uint x[]; };
layout(binding = 1) volatile coherent buffer S { uint state[]; };
layout(binding = 2) writeonly buffer O { uint o[]; };
void main() {
    uint g = gl_WorkGroupID.x, sum = x[g] & 255u;
    if (g > 0u) {
        while (state[g - 1u] == 0u) {}
        sum += state[g - 1u] - 1u;
    }
    state[g] = sum + 1u; //~ race with 11, without a fix; race with 12, without a fix
    o[g] = sum;
}
//~ main: racy
