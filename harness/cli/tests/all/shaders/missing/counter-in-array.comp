#version 450
// args: --grid 4 --push count=256
// expect: racy
// The first element of the array is a counter like a single variable.
layout(local_size_x = 32) in;
layout(push_constant) uniform Size { uint count; };
layout(std430, binding = 0) buffer Queue { uint queue[]; };
layout(std430, binding = 1) buffer Items { uint items[64]; };
void main() {
    for (;;) {
        uint i = atomicAdd(queue[0], 1u);
        if (i >= count) break;
        items[i % 64u] = i;
    }
}
