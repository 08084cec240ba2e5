// --grid 1
// Racy: one subgroup hands shared memory to another through a flag without an order.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Out { uint seen; };
shared uint data, flag;
void main() {
    uint i = gl_LocalInvocationIndex;
    if (i == 0u) flag = 0u;
    barrier();
    if (i == 0u) {
        data = 42u;
        atomicExchange(flag, 1u);
    }
    if (i == 63u) {
        uint got = atomicOr(flag, 0u);
        if (got == 1u) seen = data;
    }
}
