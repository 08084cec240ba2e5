// --grid 2,1,1 --buffer 0.0=floats:4096
// Racy: the flat index forgets z.
#version 450
layout(local_size_x = 4, local_size_y = 4, local_size_z = 4) in;
layout(std430, binding = 0) readonly buffer In { float data[]; };
layout(std430, binding = 1) writeonly buffer Out { float result[]; };
shared float cell[64];
void main() {
    uvec3 l = gl_LocalInvocationID;
    uint at = gl_WorkGroupID.x * 64u + gl_LocalInvocationIndex;
    uint flat_ = l.y * 4u + l.x + l.z;
    cell[flat_] = data[at]; //~ race, without a fix
    barrier();
    result[at] = cell[flat_];
}
//~ main: racy
