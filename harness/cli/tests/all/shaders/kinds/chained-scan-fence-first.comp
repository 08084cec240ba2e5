// --grid 4
// Racy: the fence is before the poll, nothing acquires behind it.
#version 450
layout(local_size_x = 8) in;
layout(std430, binding = 0) readonly buffer In { uint data[]; };
layout(std430, binding = 1) writeonly buffer Out { uint result[]; };
layout(std430, binding = 2) coherent buffer Chain { uint ready[64]; uint sum[64]; };
shared uint part[8];
shared uint before;
void main() {
    uint l = gl_LocalInvocationID.x, t = gl_WorkGroupID.x;
    part[l] = data[gl_GlobalInvocationID.x] + 1u;
    barrier();
    for (uint d = 1u; d < 8u; d <<= 1u) {
        uint v = l >= d ? part[l - d] : 0u;
        barrier();
        part[l] += v;
        barrier();
    }
    if (l == 7u) {
        uint base = 0u;
        if (t > 0u) {
            memoryBarrierBuffer();
            while (atomicOr(ready[t - 1u], 0u) == 0u) {} //~ fix: put `memoryBarrierBuffer();` after this atomic
            base = sum[t - 1u];
        }
        sum[t] = base + part[7]; //~ race with 25
        memoryBarrierBuffer();
        atomicExchange(ready[t], 1u);
        before = base;
    }
    barrier();
    result[gl_GlobalInvocationID.x] = before + part[l];
}
//~ main: racy; mended: clean in the orders tried
