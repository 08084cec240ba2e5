// --grid 2 --buffer 0.1=floats:1024
// Racy: nothing behind the atomic.
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) coherent buffer Nodes { float box[]; };
layout(binding = 1) readonly buffer Leaves { float leaf[]; };
layout(binding = 2) buffer Flags { uint flag[]; };
void main() {
    uint at = gl_GlobalInvocationID.x + 8u;
    box[at] = leaf[gl_GlobalInvocationID.x]; //~ race with 15
    memoryBarrierBuffer();
    while (at > 1u) {
        at >>= 1;
        if (atomicAdd(flag[at], 1u) == 0u) return; //~ fix: put `memoryBarrierBuffer();` before and after this atomic
        box[at] = max(box[2u * at], box[2u * at + 1u]);
    }
}
//~ main: racy; mended: clean in the orders tried
