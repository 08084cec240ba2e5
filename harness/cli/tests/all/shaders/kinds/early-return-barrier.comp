// --grid 2
#version 450
layout(local_size_x = 16) in;
layout(binding = 0) buffer Data { uint values[]; };
shared uint tile[16];
void main() {
    uint at = gl_GlobalInvocationID.x;
    if (at >= 30) return; //~ fix: move this `return` after the last barrier, and guard the code before that by a condition
    tile[gl_LocalInvocationIndex] = values[at];
    barrier(); //~ divergent-barrier with 8
    values[at] = tile[gl_LocalInvocationIndex ^ 1];
}
//~ main: racy; mended: clean
