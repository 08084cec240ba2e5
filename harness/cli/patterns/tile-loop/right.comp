#version 450
layout(local_size_x = 2) in;
layout(set = 0, binding = 0) buffer Data { uint value[2]; } data;
shared uint tile[2];

void main() {
    uint id = gl_LocalInvocationIndex;
    for (uint step = 0; step < 2; step++) {
        tile[id] = step;
        barrier();
        data.value[id] = tile[1 - id];
        barrier();
    }
}
