// --grid 1
#version 450
// GLSL needs both barriers, in no given order (4.60, 8.16).
layout(local_size_x = 16) in;
layout(std430, binding = 0) coherent buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Result { uint result[]; };

void main() {
    uint i = gl_LocalInvocationIndex;
    data[i] = i; //~ lost-order with 14
    memoryBarrierBuffer();
    uint mirrored = 15u - i;
    barrier(); //~ fix: put `memoryBarrierBuffer();` after this barrier
    result[i] = data[mirrored];
}
//~ main: clean; mended: clean
