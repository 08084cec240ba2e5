// --inputs auto
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
struct Reservoir { uint light; float w; float sum; uint m; };
layout(std430, binding = 0) buffer A { Reservoir src[]; };
layout(push_constant) uniform P { uvec2 size; uint frame; };
uint pcg(inout uint s) { s = s * 747796405u + 2891336453u; uint w = ((s >> ((s >> 28) + 4u)) ^ s) * 277803737u; return (w >> 22) ^ w; }
void main() {
    uvec2 p = gl_GlobalInvocationID.xy;
    if (any(greaterThanEqual(p, size))) return;
    uint seed = p.y * size.x + p.x + frame * 9781u;
    Reservoir r = src[p.y * size.x + p.x];
    for (int i = 0; i < 4; ++i) {
        uvec2 n = uvec2(clamp(ivec2(p) + ivec2(pcg(seed) % 7u, pcg(seed) % 7u) - 3, ivec2(0), ivec2(size) - 1));
        Reservoir o = src[n.y * size.x + n.x];
        r.sum += o.w * float(o.m);
        r.m += o.m;
        if (float(pcg(seed)) * 2.3283064e-10 * r.sum < o.w * float(o.m)) r.light = o.light;
    }
    src[p.y * size.x + p.x] = r; //~ race with 15, without a fix
}
//~ main: racy
