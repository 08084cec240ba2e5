// --inputs auto
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Pos { vec4 pos[]; };
layout(std430, binding = 1) writeonly buffer Sorted { uint sorted[]; };
shared uint count[16];
shared uint start[16];
void main() {
    uint l = gl_LocalInvocationIndex;
    if (l < 16) count[l] = 0;
    barrier();
    uint cell = uint(abs(pos[l].x)) & 15u;
    atomicAdd(count[cell], 1u);
    barrier();
    if (l == 0) {
        uint s = 0;
        for (uint i = 0; i < 16; ++i) { start[i] = s; s += count[i]; }
    }
    barrier();
    uint at = atomicAdd(start[cell], 1u);
    sorted[at] = l;
}
//~ main: clean in the orders tried
