// --grid 2
// Racy: neither is the flag atomic, nor is the data handed over with it.
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) buffer Mail { uint data; uint flag; uint seen; };
void main() {
    if (gl_WorkGroupID.x == 0u) {
        data = 42u;
        flag = 1u;
    } else {
        uint got = flag;
        if (got == 1u) seen = data;
    }
}
