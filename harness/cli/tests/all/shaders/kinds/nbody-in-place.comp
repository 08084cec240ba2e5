// --grid 2 --buffer 0.0=floats:1024
// Racy: positions are moved while other workgroups read them.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) buffer P { vec4 pos[]; };
shared vec4 tile[8];
void main() {
    uint i = gl_GlobalInvocationID.x;
    vec3 a = vec3(0);
    vec4 p = pos[i];
    for (uint t = 0; t < gl_NumWorkGroups.x; t++) {
        tile[gl_LocalInvocationID.x] = pos[t * gl_WorkGroupSize.x + gl_LocalInvocationID.x];
        barrier();
        for (uint j = 0; j < gl_WorkGroupSize.x; j++) a += tile[j].xyz - p.xyz;
        barrier();
    }
    pos[i].xyz = p.xyz + a; //~ race with 12, without a fix
}
//~ main: racy
