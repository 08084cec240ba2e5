#version 450
// expect: needs-inputs
// The offsets belong to the counts of each workgroup, which no choice of contents meets.
layout(local_size_x = 64) in;
layout(push_constant) uniform P { uint num_keys; uint shift; uint num_groups; };
layout(std430, binding = 0) readonly buffer Src { uint src[]; };
layout(std430, binding = 1) readonly buffer Offsets { uint offsets[]; };
layout(std430, binding = 2) buffer Dst { uint dst[]; };
shared uint histogram[16];
shared uint start[16];
void main() {
    uint lane = gl_LocalInvocationIndex;
    if (lane < 16) {
        histogram[lane] = 0;
        start[lane] = offsets[lane * num_groups + gl_WorkGroupID.x];
    }
    barrier();
    uint i = gl_GlobalInvocationID.x;
    if (i < num_keys) {
        uint bin = (src[i] >> shift) & 15u;
        dst[start[bin] + atomicAdd(histogram[bin], 1u)] = src[i];
    }
}
