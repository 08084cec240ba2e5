// --grid 2
// Racy: a volatile flag is no atomic.
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) coherent buffer D { uint data; };
layout(binding = 1) volatile coherent buffer F { uint flag; };
layout(binding = 2) writeonly buffer O { uint o[]; };
void main() {
    if (gl_WorkGroupID.x == 0) {
        data = 7; //~ race with 14
        memoryBarrier();
        flag = 1; //~ race with 14; fix: make this access atomic (it remains unordered)
    } else {
        for (int i = 0; i < 4; i++) if (flag == 1) { memoryBarrier(); o[0] = data; break; } //~ fix: make this access atomic (it remains unordered)
    }
}
//~ main: racy; mended: clean in the orders tried
