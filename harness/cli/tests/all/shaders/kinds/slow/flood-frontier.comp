// --grid 1 --buffer 0.0=random:256
// Clean: a wave over a field in shared memory, claims by compare and swap.
#version 450
layout(local_size_x = 16) in;
layout(binding = 0) readonly buffer W { uint wall[]; };
layout(binding = 1) writeonly buffer D { uint dist[]; };
shared uint d[16];
shared uint work;
void main() {
    uint t = gl_LocalInvocationIndex;
    d[t] = t == 0 ? 0u : 0xffffffffu;
    barrier();
    for (uint level = 0; level < 8; level++) {
        if (t == 0) work = 0;
        barrier();
        if (atomicOr(d[t], 0u) == level) {
            for (int k = -1; k <= 1; k += 2) {
                uint n = (t + k) & 15u;
                if ((wall[n] & 3u) != 0u && atomicCompSwap(d[n], 0xffffffffu, level + 1u) == 0xffffffffu) atomicAdd(work, 1u);
            }
        }
        barrier();
        if (work == 0u) break;
        barrier();
    }
    dist[t] = d[t];
}
//~ main: clean in the orders tried
