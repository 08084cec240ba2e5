// --grid 1
// Divergent: a function with a barrier is called from a branch of some lanes.
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) writeonly buffer O { uint o[]; };
shared uint s[4];
uint exchange(uint t) { s[t] = t; barrier(); return s[3 - t]; }
void main() {
    uint t = gl_LocalInvocationID.x;
    uint v = 0;
    if (t < 2) v = exchange(t);
    o[t] = v;
}
