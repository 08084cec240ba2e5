// --grid 1 --buffer 0.0=iota:64
// Clean: the condition is read from what nobody writes.
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) readonly buffer I { uint x[]; };
layout(binding = 1) writeonly buffer O { uint o[]; };
shared uint s[4];
void main() {
    uint t = gl_LocalInvocationID.x;
    s[t] = t;
    if (x[1] == 1u) { barrier(); o[t] = s[3 - t]; }
}
//~ main: clean
