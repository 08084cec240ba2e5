// --inputs auto
#version 450
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer Row { uint row[]; };
layout(std430, binding = 1) readonly buffer Col { uint col[]; };
layout(std430, binding = 2) readonly buffer W { uint w[]; };
layout(std430, binding = 3) buffer Dist { uint dist[]; };
layout(std430, binding = 4) readonly buffer Cur { uint curCount; uint cur[]; };
layout(std430, binding = 5) buffer Next { uint nextCount; uint next[]; };
layout(std430, binding = 6) buffer Mark { uint mark[]; };
layout(push_constant) uniform P { uint delta; uint round; };
void main() {
    if (gl_GlobalInvocationID.x >= curCount) return;
    uint u = cur[gl_GlobalInvocationID.x];
    uint du = atomicOr(dist[u], 0u);
    for (uint e = row[u]; e < row[u + 1]; ++e) {
        if (w[e] > delta) continue;
        uint v = col[e];
        uint nd = du + w[e];
        if (atomicMin(dist[v], nd) > nd) {
            if (mark[v] != round)
            {
                mark[v] = round;
                next[atomicAdd(nextCount, 1u)] = v;
            }
        }
    }
}
//~ main: needs-inputs
