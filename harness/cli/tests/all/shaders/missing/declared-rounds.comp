#version 450
// expect: racy
// The declared number of rounds is 1; the first round races with the second one.
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint STEPS = 1;
layout(std430, binding = 0) buffer Data { float data[]; };
shared float tile[64];
void main() {
    uint i = gl_LocalInvocationIndex;
    tile[i] = data[gl_GlobalInvocationID.x];
    barrier();
    for (uint s = 0; s < STEPS; ++s) {
        float v = tile[(i + 1u) % 64u];
        barrier();
        tile[i] = v;
    }
    data[gl_GlobalInvocationID.x] = tile[i];
}
