// --grid 1 --push 0=10
// Clean: rounds are the same for all, only the accesses are guarded.
#version 450
layout(local_size_x = 4) in;
layout(push_constant) uniform P { uint n; };
layout(binding = 0) readonly buffer I { uint x[]; };
layout(binding = 1) writeonly buffer O { uint o[]; };
shared uint s[4];
void main() {
    uint t = gl_LocalInvocationID.x;
    for (uint base = 0; base < n; base += 4) {
        uint i = base + t;
        s[t] = i < n ? x[i] : 0u;
        barrier();
        if (i < n) o[i] = s[t ^ 1];
        barrier();
    }
}
//~ main: clean
