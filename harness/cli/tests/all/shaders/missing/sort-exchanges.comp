// expect: racy
// A bitonic sort. With equal elements no invocation exchanges any.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
shared uint s[128];
void main() {
    uint l = gl_LocalInvocationID.x, base = gl_WorkGroupID.x * 128;
    s[l] = data[base + l];
    s[l + 64] = data[base + l + 64];
    for (uint k = 2; k <= 128; k <<= 1) {
        for (uint j = k >> 1; j > 0; j >>= 1) {
            barrier();
            uint i = 2 * l - (l & (j - 1)), other = i ^ j;
            uint a = s[i], b = s[other];
            if ((a > b) == ((i & k) == 0)) {
                s[i] = b;
                s[other] = a;
            }
        }
    }
    data[base + l] = s[l];
    data[base + l + 64] = s[l + 64];
}
