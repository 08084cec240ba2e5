#version 450
// 64 invocations add up what a buffer holds: nothing depends on their order.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer In { uint values[]; } given;
layout(set = 1, binding = 2) buffer Out { uint total; } result;
shared uint sums[64];
void main() {
    uint me = gl_LocalInvocationIndex;
    sums[me] = given.values[me];
    barrier();
    for (uint half_ = 32u; half_ > 0u; half_ >>= 1u) {
        if (me < half_) {
            sums[me] += sums[me + half_];
        }
        barrier();
    }
    if (me == 0u) {
        result.total = sums[0];
    }
}
