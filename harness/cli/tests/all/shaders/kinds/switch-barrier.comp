// --grid 2
// Clean: which case is taken is the same for a workgroup.
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) writeonly buffer O { uint o[]; };
shared uint s[4];
void main() {
    uint t = gl_LocalInvocationID.x;
    s[t] = t;
    uint v = 0;
    switch (gl_WorkGroupID.x) {
    case 0: barrier(); v = s[3 - t]; break;
    case 1: barrier(); v = s[t ^ 1]; break;
    default: break;
    }
    o[gl_GlobalInvocationID.x] = v;
}
//~ main: clean
