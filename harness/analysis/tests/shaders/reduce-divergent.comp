#version 450
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer Data { uint value[4]; uint total; } data;
shared uint sums[4];

void main() {
    uint id = gl_LocalInvocationIndex;
    sums[id] = 1;
    barrier();
    for (uint stride = 2; stride > 0; stride /= 2) {
        if (id < stride) {
            sums[id] += sums[id + stride];
            barrier();
        }
    }
    if (id == 0) {
        data.total = sums[0];
    }
}
