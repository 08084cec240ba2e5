#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) coherent buffer Data { uint value; } data;
layout(set = 0, binding = 1) coherent buffer Flag { uint ready; } flag;
layout(set = 0, binding = 2) buffer Result { uint seen; } result;

void main() {
    if (gl_WorkGroupID.x == 0) {
        data.value = 42;
        memoryBarrierBuffer();
        atomicExchange(flag.ready, 1u);
    } else if (gl_WorkGroupID.x == 1 && atomicAdd(flag.ready, 0u) == 1u) {
        memoryBarrierBuffer();
        result.seen = data.value;
    }
}
