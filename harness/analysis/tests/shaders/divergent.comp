#version 450
layout(local_size_x = 2) in;
layout(set = 0, binding = 0) buffer Data { uint values[2]; } data;
shared uint first;

void main() {
    if (gl_LocalInvocationIndex == 0) {
        first = 7;
        barrier();
    }
    data.values[gl_LocalInvocationIndex] = first;
}
