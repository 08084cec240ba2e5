// --inputs auto
#version 450
layout(local_size_x = 16) in;
layout(std430, binding = 0) coherent buffer Data { uint a[]; };
layout(std430, binding = 1) buffer Out { uint o[]; };
layout(std430, binding = 2) coherent buffer Sync { uint arrived; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint n = gl_NumWorkGroups.x * 16;
    a[i] = i * 3; //~ race with 19
    memoryBarrierBuffer();
    if (gl_LocalInvocationIndex == 0) {
        atomicAdd(arrived, 1u);
        while (atomicAdd(arrived, 0u) < gl_NumWorkGroups.x) {}
    }
    memoryBarrierBuffer();
    barrier(); //~ fix: run the code after this barrier in a second dispatch: a barrier orders the invocations of one workgroup, and no workgroup waits for others
    memoryBarrierBuffer();
    o[i] = a[(i + 17) % n];
}
//~ main: racy
