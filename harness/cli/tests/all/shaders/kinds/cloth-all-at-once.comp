// --inputs auto
#version 450
layout(local_size_x = 32) in;
layout(std430, binding = 0) buffer P { vec4 p[]; };
layout(push_constant) uniform C { uint count; uint colour; };
void main() {
    uint i = gl_GlobalInvocationID.x + colour;
    if (i + 1 >= count) return;
    vec3 d = p[i + 1].xyz - p[i].xyz;
    float k = 0.5 * (1.0 - 1.0 / max(length(d), 1e-6));
    p[i].xyz += d * k;
    p[i + 1].xyz -= d * k; //~ race with 11, without a fix; race with 9, without a fix
}
//~ main: racy
