// --grid 2
// Racy: the whole structure is written back.
#version 450
layout(local_size_x = 8) in;
struct S { uint a; float b; };
layout(binding = 0) buffer B { S s[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    S mine = s[i >> 1];
    if ((i & 1u) == 0u) mine.a = i; else mine.b = float(i);
    s[i >> 1] = mine; //~ race with 9, without a fix
}
//~ main: racy
