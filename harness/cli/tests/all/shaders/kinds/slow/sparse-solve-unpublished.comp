// --inputs auto
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) readonly buffer R { uint row[]; };
layout(std430, binding = 1) readonly buffer C { uint col[]; };
layout(std430, binding = 2) coherent buffer X { float x[]; };
layout(std430, binding = 3) coherent buffer D { uint done[]; };
layout(push_constant) uniform P { uint n; };
void main() {
    uint r = gl_WorkGroupID.x;
    if (r >= n) return;
    float s = 1.0;
    for (uint e = row[r]; e < row[r + 1]; ++e) {
        uint c = col[e];
        if (c >= r) continue;
        while (atomicOr(done[c], 0u) == 0u) {}
        memoryBarrierBuffer();
        s -= 0.5 * x[c];
    }
    x[r] = s;

    atomicExchange(done[r], 1u);
}
//~ main: needs-inputs
