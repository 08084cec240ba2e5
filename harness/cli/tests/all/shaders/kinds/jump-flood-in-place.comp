// --grid 2,2 --image 0.0=8x8,fill=random --push 0=2
// Racy.
#version 450
layout(local_size_x = 4, local_size_y = 4) in;
layout(push_constant) uniform P { int step; };
layout(binding = 0, rg32i) uniform iimage2D field;
void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    ivec2 best = imageLoad(field, p).xy;
    ivec2 q = clamp(p + ivec2(step, 0), ivec2(0), imageSize(field) - 1);
    ivec2 s = imageLoad(field, q).xy; //~ race with 13, without a fix
    if (s.x > best.x) best = s;
    imageStore(field, p, ivec4(best, 0, 0));
}
//~ main: racy
