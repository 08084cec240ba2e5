// --grid 2
#version 450
#extension GL_EXT_nonuniform_qualifier : require
layout(local_size_x = 4) in;
layout(binding = 0) buffer Data { uint values[64]; } buffers[8];
layout(binding = 1) buffer Out { uint sums[]; };
void main() {
    uint which = gl_GlobalInvocationID.x % 8;
    buffers[nonuniformEXT(which)].values[3] = which;
    sums[gl_GlobalInvocationID.x] = buffers[nonuniformEXT(which)].values[3] + buffers[which].values.length();
}
//~ main: clean
