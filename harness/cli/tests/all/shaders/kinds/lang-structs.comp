// --grid 2 --push 0=3,1,2,4
// Clean: structures, matrices, inout, early returns, swizzles.
#version 450
layout(local_size_x_id = 0) in;
layout(local_size_x = 4) in;
struct Inner { vec3 p; float w[3]; mat3 m; };
struct Outer { Inner in_[2]; bool b; uvec2 k; };
layout(push_constant) uniform P { uint n; uint q[3]; };
layout(binding = 0) uniform U { vec4 table[4]; mat4 view; } u;
layout(std430, binding = 1) buffer S { Outer items[]; };
layout(std430, binding = 2, row_major) writeonly buffer R { mat3x2 r[]; };
const float weights[3] = float[](0.25, 0.5, 0.25);
float apply(inout Inner i, in float by, out bool neg) {
    i.p.xz *= by;
    i.w[n % 3] += by;
    neg = i.p.x < 0.0;
    if (neg) return 0.0;
    for (int k = 0; k < 3; ++k) { if (k == 1) continue; i.m[k] = i.m[k].zyx * weights[k]; }
    return dot(i.m[1], i.p);
}
void main() {
    uint i = gl_GlobalInvocationID.x;
    bool neg;
    float f = apply(items[i].in_[q[0] & 1], u.table[i & 3].y, neg);
    switch (i & 3u) { case 0u: f += 1.0; case 1u: f *= 2.0; break; default: f = -f; }
    do { f *= 0.5; } while (f > 1.0);
    items[i].b = neg || f < 0.5;
    r[i][1] = vec2(f, u.view[2][1]);
}
//~ main: clean
