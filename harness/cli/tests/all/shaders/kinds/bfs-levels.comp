// --grid 1 --push 0=31
// Clean: two frontiers in shared memory, barriers around the swap.
#version 450
layout(local_size_x = 8) in;
layout(push_constant) uniform P { uint nodes; };
layout(std430, binding = 0) buffer Depth { uint depth[64]; };
shared uint frontier[2][64];
shared uint count[2];
void main() {
    uint l = gl_LocalInvocationID.x;
    if (l == 0u) { frontier[0][0] = 1u; count[0] = 1u; count[1] = 0u; }
    barrier();
    uint cur = 0u;
    for (uint level = 1u; level < 6u; level++) {
        uint n = count[cur];
        for (uint i = l; i < n; i += 8u) {
            uint node = frontier[cur][i];
            for (uint c = 2u * node; c <= 2u * node + 1u; c++) {
                if (c <= nodes && atomicCompSwap(depth[c], 0u, level) == 0u) {
                    frontier[cur ^ 1u][atomicAdd(count[cur ^ 1u], 1u)] = c;
                }
            }
        }
        barrier();
        if (l == 0u) count[cur] = 0u;
        cur ^= 1u;
        barrier();
    }
}
//~ main: clean in the orders tried
