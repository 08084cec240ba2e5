// --inputs auto
// Each trial of other tables ends at its limit of steps, so the table decides.
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) readonly buffer Table { uint next[]; };
layout(binding = 1) buffer Result { uint sums[]; };
shared uint seen[32];
void main() {
    uint at = gl_LocalInvocationIndex;
    if (next[at] == 77u) seen[at] = 1u;
    if (seen[at] > 0u) sums[gl_GlobalInvocationID.x] = 1u;
    uint sum = 0u;
    for (uint i = 0u; i < 25000u; i++) sum += i ^ at;
    sums[gl_GlobalInvocationID.x] = sum;
}
//~ main: needs-inputs
