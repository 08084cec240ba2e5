// --grid 1 --buffer 0.0=random:256
// Racy: the counter is cleared while others still look at it.
#version 450
layout(local_size_x = 16) in;
layout(binding = 0) readonly buffer W { uint wall[]; };
layout(binding = 1) writeonly buffer D { uint dist[]; };
shared uint d[16];
shared uint work;
void main() {
    uint t = gl_LocalInvocationIndex;
    d[t] = t == 0 ? 0u : 0xffffffffu;
    for (uint level = 0; level < 8; level++) {
        if (t == 0) work = 0; //~ race with 20; fix: put `barrier();` before this line
        barrier(); //~ divergent-barrier with 22
        if (atomicOr(d[t], 0u) == level) {
            uint n = (t + 1) & 15u;
            if (atomicCompSwap(d[n], 0xffffffffu, level + 1u) == 0xffffffffu) atomicAdd(work, 1u);
        }
        barrier();
        if (work == 0u) break;
    }
    dist[t] = d[t]; //~ race with 17
}
//~ main: racy; mended: clean in the orders tried
