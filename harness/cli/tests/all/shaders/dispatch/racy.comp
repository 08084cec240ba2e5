#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { uint count; } data;
void main() {
    data.count = data.count + 1u;
}
