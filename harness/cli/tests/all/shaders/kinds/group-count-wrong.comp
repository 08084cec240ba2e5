// --grid 3,2
// Racy: multiplied by the wrong extent.
#version 450
layout(local_size_x = 4, local_size_y = 2) in;
layout(binding = 0) writeonly buffer O { uint o[]; };
void main() {
    uint g = gl_WorkGroupID.y * gl_NumWorkGroups.y + gl_WorkGroupID.x;
    o[g * gl_WorkGroupSize.x * gl_WorkGroupSize.y + gl_LocalInvocationIndex] = g; //~ race, without a fix
}
//~ main: racy
