// --grid 4 --buffer 0.0=random:256
// Clean: tiles by a counter, value and state in one word.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer I { uint x[]; };
layout(binding = 1) buffer S { uint next; uint state[]; };
layout(binding = 2) writeonly buffer O { uint o[]; };
shared uint tile, base, s[8];
void main() {
    uint t = gl_LocalInvocationID.x;
    if (t == 0u) tile = atomicAdd(next, 1u);
    barrier();
    uint g = tile, v = x[g * 8u + t] & 15u;
    s[t] = v;
    barrier();
    for (uint d = 1u; d < 8u; d <<= 1) {
        uint a = t >= d ? s[t - d] : 0u;
        barrier();
        s[t] += a;
        barrier();
    }
    if (t == 7u) {
        uint own = s[7], sum = 0u;
        if (g > 0u) {
            atomicExchange(state[g], 1u << 30 | own);
            uint at = g - 1u;
            while (true) {
                uint w = atomicOr(state[at], 0u);
                if (w >> 30 == 0u) continue;
                sum += w & 0x3fffffffu;
                if (w >> 30 == 2u) break;
                at--;
            }
        }
        atomicExchange(state[g], 2u << 30 | (sum + own));
        base = sum;
    }
    barrier();
    o[g * 8u + t] = base + s[t];
}
//~ main: clean in the orders tried
