#version 450
// expect: racy
// Each invocation loads four elements of a tile, so the second tile needs more elements than two workgroups.
layout(local_size_x = 32) in;
layout(push_constant) uniform Parameters { uint count; };
layout(std430, binding = 0) readonly buffer Source { float source[]; };
layout(std430, binding = 1) writeonly buffer Sums { float sums[]; };
shared float tile[128];
void main() {
    float sum = 0.0;
    for (uint round = 0u; round < (count + 127u) / 128u; ++round) {
        for (uint i = gl_LocalInvocationIndex; i < 128u; i += 32u) {
            uint at = round * 128u + i;
            tile[i] = at < count ? source[at] : 0.0;
        }
        barrier();
        for (uint i = 0u; i < 128u; ++i) sum += tile[i];
    }
    sums[gl_GlobalInvocationID.x] = sum;
}
