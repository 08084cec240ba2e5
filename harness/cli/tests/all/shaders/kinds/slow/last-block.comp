// --grid 4
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer In { float data[]; };
layout(std430, binding = 1) buffer Partial { float partial[]; };
layout(std430, binding = 2) buffer Counter { uint done; };
layout(std430, binding = 3) writeonly buffer Result { float result; };
shared float s[64];
shared bool isLast;
void main() {
    uint t = gl_LocalInvocationIndex;
    s[t] = data[gl_GlobalInvocationID.x];
    barrier();
    for (uint d = 32; d > 0; d >>= 1) {
        if (t < d) s[t] += s[t + d];
        barrier();
    }
    if (t == 0) {
        partial[gl_WorkGroupID.x] = s[0]; //~ race with 26; fix: declare `Partial` coherent
        memoryBarrier();
        isLast = atomicAdd(done, 1) == gl_NumWorkGroups.x - 1;
    }
    barrier(); //~ fix: put `memoryBarrierBuffer();` before and after this barrier
    if (isLast) {
        float v = 0;
        for (uint i = t; i < gl_NumWorkGroups.x; i += 64) v += partial[i];
        s[t] = v;
        barrier();
        for (uint d = 32; d > 0; d >>= 1) {
            if (t < d) s[t] += s[t + d];
            barrier();
        }
        if (t == 0) result = s[0];
    }
}
//~ main: racy; mended: clean in the orders tried
