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
    if (i == 0u) { //~ fix: put `barrier();` after the statement that this line controls
        data = 42u; //~ race with 17
        atomicExchange(flag, 1u);
    }
    if (i == 63u) {
        uint got = atomicOr(flag, 0u);
        if (got == 1u) seen = data;
    }
}
//~ main: racy; mended: clean in the orders tried
