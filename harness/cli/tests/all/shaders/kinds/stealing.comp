// --grid 3
// Clean: each workgroup works off its range by an atomic counter, then those of others.
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer N { uint next[3]; };
layout(binding = 1) writeonly buffer O { uint o[]; };
shared uint job;
void main() {
    uint g = gl_WorkGroupID.x;
    for (uint k = 0; k < gl_NumWorkGroups.x; k++) {
        uint victim = (g + k) % gl_NumWorkGroups.x;
        while (true) {
            barrier();
            if (gl_LocalInvocationIndex == 0) job = atomicAdd(next[victim], 1u);
            barrier();
            if (job >= 4u) break;
            o[(victim * 4u + job) * 4u + gl_LocalInvocationIndex] = g;
        }
    }
}
//~ main: clean in the orders tried
