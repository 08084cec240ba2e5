// --grid 4 --push 0=1000
#version 450
layout(local_size_x = 256) in;
layout(std430, set = 0, binding = 0) readonly buffer Input { vec4 points[]; };
layout(std430, set = 0, binding = 1) buffer Output { vec4 minimum[]; } lo;
layout(std430, set = 0, binding = 2) buffer Output2 { vec4 maximum[]; } hi;
layout(push_constant) uniform Params { uint count; } params;
shared vec3 smin[256];
shared vec3 smax[256];
void main() {
    uint tid = gl_LocalInvocationID.x;
    uint gid = gl_GlobalInvocationID.x;
    vec3 p = gid < params.count ? points[gid].xyz : points[0].xyz;
    smin[tid] = p;
    smax[tid] = p;
    barrier();
    for (uint s = gl_WorkGroupSize.x / 2; s > 0; s /= 2) {
        if (tid < s) {
            smin[tid] = min(smin[tid], smin[tid + s]);
            smax[tid] = max(smax[tid], smax[tid + s]);
        }
        barrier();
    }
    if (tid == 0) {
        lo.minimum[gl_WorkGroupID.x] = vec4(smin[0], 0);
        hi.maximum[gl_WorkGroupID.x] = vec4(smax[0], 0);
    }
}
//~ main: clean
