// --grid 1 --push 0=10
// Divergent: the last round is not of all.
#version 450
layout(local_size_x = 4) in;
layout(push_constant) uniform P { uint n; };
layout(binding = 0) readonly buffer I { uint x[]; };
layout(binding = 1) writeonly buffer O { uint o[]; };
shared uint s[4];
void main() {
    uint t = gl_LocalInvocationID.x;
    for (uint i = t; i < n; i += 4) { //~ fix: let every invocation go through the same rounds of this loop, and guard the elements by a condition
        s[t] = x[i];
        barrier(); //~ divergent-barrier with 11
        o[i] = s[t ^ 1];
        barrier();
    }
}
//~ main: racy; mended: clean
