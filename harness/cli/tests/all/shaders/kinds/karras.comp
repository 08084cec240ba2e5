// --grid 2 --buffer 0.1=floats:1024
// Clean: boxes bottom up; whoever comes second to a node makes it.
#version 450
layout(local_size_x = 2) in;
layout(binding = 0) coherent buffer Nodes { float box[]; };
layout(binding = 1) readonly buffer Leaves { float leaf[]; };
layout(binding = 2) buffer Flags { uint flag[]; };
void main() {
    uint at = gl_GlobalInvocationID.x + 4u;
    box[at] = leaf[gl_GlobalInvocationID.x];
    while (at > 1u) {
        at >>= 1;
        memoryBarrierBuffer();
        if (atomicAdd(flag[at], 1u) == 0u) return;
        memoryBarrierBuffer();
        box[at] = max(box[2u * at], box[2u * at + 1u]);
    }
}
//~ main: clean in the orders tried
