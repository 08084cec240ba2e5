// --grid 1
// Racy: a memory barrier does not wait.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) writeonly buffer O { uint o[]; };
shared uint s[8];
void main() {
    uint t = gl_LocalInvocationID.x;
    s[t] = t;
    groupMemoryBarrier();
    o[t] = s[7 - t]; //~ race with 9; fix: put `barrier();` before this line
}
//~ main: racy; mended: clean
