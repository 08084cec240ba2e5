// --inputs auto
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint last; } push;
layout(binding = 0) buffer Data { uint data[]; };
shared uint row[64];
void main() {
    uint i = gl_GlobalInvocationID.x;
    row[gl_LocalInvocationIndex] = 0u; //~ race with 13
    if (i > push.last) return; //~ fix: move this `return` after the last barrier, and guard the code before that by a condition
    row[gl_LocalInvocationIndex] = data[i];
    barrier(); //~ divergent-barrier with 10
    data[i] = row[gl_LocalInvocationIndex ^ 2u];
}
//~ main: racy; mended: clean
