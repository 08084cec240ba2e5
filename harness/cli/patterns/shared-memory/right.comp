#version 450
layout(local_size_x = 2) in;
layout(set = 0, binding = 0) buffer Data { uint value[2]; } data;
shared uint row[2];

void main() {
    uint id = gl_LocalInvocationIndex;
    row[id] = 40 + id;
    barrier();
    data.value[id] = row[1 - id];
}
