// --subgroup-size 32
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) buffer Data { uint seen[]; };
shared uint flag; shared uint data;
void main() {
    if (gl_LocalInvocationIndex == 0) flag = 0;
    barrier();
    if (gl_LocalInvocationIndex == 5) { data = 42; memoryBarrierShared(); atomicExchange(flag, 1u); }
    if (gl_LocalInvocationIndex == 7) {
        while (atomicAdd(flag, 0u) == 0u) { } //~ hang with 9, without a fix
        memoryBarrierShared();
        seen[0] = data;
    }
}
//~ main: racy
