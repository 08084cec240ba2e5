// --inputs auto
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(std430, binding = 0) readonly buffer I { float src[]; };
layout(std430, binding = 1) buffer O { float dst[]; };
layout(push_constant) uniform P { uint w, h; };
void main() {
    uvec2 p = gl_GlobalInvocationID.xy;
    if (p.x >= w || p.y >= h) return;
    dst[p.x * w + p.y] = src[p.y * w + p.x];
}
//~ main: needs-inputs
