// --grid 2
// Racy: lane 0 says that all have written when it has.
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) coherent buffer D { uint data[4]; };
layout(binding = 1) coherent buffer F { uint flag; };
layout(binding = 2) writeonly buffer O { uint o[]; };
void main() {
    uint t = gl_LocalInvocationID.x;
    if (gl_WorkGroupID.x == 0) {
        data[t] = t * t; //~ race with 18, without a fix
        memoryBarrierBuffer();
        if (t == 0) atomicExchange(flag, 1u);
    } else {
        if (t == 0) { while (atomicOr(flag, 0u) == 0u) {} memoryBarrierBuffer(); }
        barrier();
        memoryBarrierBuffer();
        o[t] = data[3 - t];
    }
}
//~ main: racy
