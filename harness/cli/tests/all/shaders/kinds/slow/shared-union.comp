// --grid 2
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) buffer Data { uvec4 values[]; };
shared uvec4 tile[32];
shared bool any;
void main() {
    uint lane = gl_LocalInvocationIndex;
    any = false; //~ race; fix: let one invocation make this store: `if (gl_LocalInvocationIndex == 0)`
    tile[lane] = values[gl_GlobalInvocationID.x];
    barrier();
    if (tile[lane].w == 0u) any = true; //~ race, without a fix
    barrier();
    if (any) values[gl_GlobalInvocationID.x].xz = tile[31 - lane].yw;
}
//~ main: racy
