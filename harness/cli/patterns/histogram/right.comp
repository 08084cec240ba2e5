#version 450
layout(local_size_x = 2) in;
layout(set = 0, binding = 0) buffer Data { uint total; } data;
shared uint bin;

void main() {
    uint id = gl_LocalInvocationIndex;
    if (id == 0) {
        bin = 0;
    }
    barrier();
    atomicAdd(bin, 1u);
    barrier();
    if (id == 0) {
        data.total = bin;
    }
}
