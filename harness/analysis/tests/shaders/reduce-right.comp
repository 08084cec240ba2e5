#version 450
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer Data { uint result[2]; uint values[]; } data;
shared uint sums[4];

void main() {
    uint me = gl_LocalInvocationIndex;
    sums[me] = data.values[gl_GlobalInvocationID.x];
    barrier();
    for (uint step = 2; step > 0; step /= 2) {
        if (me < step) {
            sums[me] += sums[me + step];
        }
        barrier();
    }
    if (me == 0) {
        data.result[gl_WorkGroupID.x] = sums[0];
    }
}
