// --grid 2 --buffer 0.0=floats:1024
// Clean: tiles of bodies, two barriers a tile.
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer P { vec4 pos[]; };
layout(binding = 1) buffer V { vec4 vel[]; };
shared vec4 tile[8];
void main() {
    uint i = gl_GlobalInvocationID.x;
    vec3 a = vec3(0);
    vec4 p = pos[i];
    for (uint t = 0; t < gl_NumWorkGroups.x; t++) {
        tile[gl_LocalInvocationID.x] = pos[t * gl_WorkGroupSize.x + gl_LocalInvocationID.x];
        barrier();
        for (uint j = 0; j < gl_WorkGroupSize.x; j++) {
            vec3 d = tile[j].xyz - p.xyz;
            float r = dot(d, d) + 0.01;
            a += d * (tile[j].w / (r * sqrt(r)));
        }
        barrier();
    }
    vel[i].xyz += a;
}
//~ main: clean
