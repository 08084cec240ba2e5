// --grid 2
// Clean: workgroup 0 fills, workgroup 1 waits for its flag.
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) coherent buffer D { uint data[4]; };
layout(binding = 1) coherent buffer F { uint flag; };
layout(binding = 2) writeonly buffer O { uint o[]; };
void main() {
    uint t = gl_LocalInvocationID.x;
    if (gl_WorkGroupID.x == 0) {
        data[t] = t * t;
        memoryBarrierBuffer();
        barrier();
        if (t == 0) { memoryBarrierBuffer(); atomicExchange(flag, 1u); }
    } else {
        if (t == 0) { while (atomicOr(flag, 0u) == 0u) {} memoryBarrierBuffer(); }
        barrier();
        memoryBarrierBuffer();
        o[t] = data[3 - t];
    }
}
//~ main: clean
