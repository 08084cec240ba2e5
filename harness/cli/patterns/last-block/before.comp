#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) coherent buffer Partial { uint sum[]; } partial;
layout(set = 0, binding = 1) coherent buffer Counter { uint done; } counter;
layout(set = 0, binding = 2) buffer Result { uint total; } result;

void main() {
    partial.sum[gl_WorkGroupID.x] = 1;
    memoryBarrierBuffer();
    if (atomicAdd(counter.done, 1u) == gl_NumWorkGroups.x - 1) {
        uint total = 0;
        for (uint group = 0; group < gl_NumWorkGroups.x; group++) {
            total += partial.sum[group];
        }
        result.total = total;
    }
}
