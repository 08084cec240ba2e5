#version 450
// Waits for what nobody does.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { uint flag; } data;
void main() {
    while (atomicAdd(data.flag, 0u) == 0u) {
    }
}
