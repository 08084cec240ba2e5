// --grid 2,2 --image 0.0=8x8,fill=random --image 0.1=8x8 --push 0=2
// Clean: a step from one image to another.
#version 450
layout(local_size_x = 4, local_size_y = 4) in;
layout(push_constant) uniform P { int step; };
layout(binding = 0, rg32i) uniform readonly iimage2D from;
layout(binding = 1, rg32i) uniform writeonly iimage2D to;
void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy), best = ivec2(-1000);
    int d = 1 << 30;
    for (int y = -1; y <= 1; y++)
        for (int x = -1; x <= 1; x++) {
            ivec2 q = p + ivec2(x, y) * step;
            if (any(lessThan(q, ivec2(0))) || any(greaterThanEqual(q, imageSize(from)))) continue;
            ivec2 s = imageLoad(from, q).xy & 7;
            ivec2 e = s - p;
            int n = e.x * e.x + e.y * e.y;
            if (n < d) { d = n; best = s; }
        }
    imageStore(to, p, ivec4(best, 0, 0));
}
//~ main: clean
