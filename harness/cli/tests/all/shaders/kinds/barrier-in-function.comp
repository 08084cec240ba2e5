// --grid 1
// Divergent: a function with a barrier is called from a branch of some lanes.
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) writeonly buffer O { uint o[]; };
shared uint s[4];
uint exchange(uint t) { s[t] = t; barrier(); return s[3 - t]; } //~ divergent-barrier with 12
void main() {
    uint t = gl_LocalInvocationID.x;
    uint v = 0;
    if (t < 2) v = exchange(t); //~ fix: split this `if` so that every invocation reaches the barrier
    o[t] = v;
}
//~ main: racy; mended: clean
