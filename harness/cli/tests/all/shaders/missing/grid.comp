#version 450
// expect: racy
// The barrier orders one workgroup, and neighbours of two workgroups race.
layout(local_size_x = 8) in;
layout(binding = 0) buffer Data { uint data[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    data[i] = i;
    barrier();
    memoryBarrierBuffer();
    data[i + 64] = data[i + 1];
}
