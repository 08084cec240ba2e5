// --inputs auto
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer B { vec4 bodies[]; };
layout(std430, binding = 1) buffer A { vec4 acc[]; };
layout(std140, binding = 2) uniform C { uint tiles; };
shared vec4 tile[64];
void main() {
    uint gi = gl_LocalInvocationIndex;
    vec4 a = vec4(0); vec4 me = bodies[gl_GlobalInvocationID.x];
    for (uint t = 0; t < tiles; ++t) {
        tile[gi] = bodies[t * 64 + gi]; //~ race with 14; fix: put `barrier();` before this line
        barrier();
        for (uint k = 0; k < 64; ++k) { vec4 d = tile[k] - me; a += d * inversesqrt(dot(d, d) + 0.01); }
    }
    acc[gl_GlobalInvocationID.x] = a;
}
//~ main: racy; mended: clean
