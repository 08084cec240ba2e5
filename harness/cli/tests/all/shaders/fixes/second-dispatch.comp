// --grid 2
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { float a[]; };
layout(binding = 1) buffer Out { float b[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    a[i] = a[i] * 2.0;
    memoryBarrierBuffer();
    barrier();
    b[i] = a[(i + 1) % 128];
}
