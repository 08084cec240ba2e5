// --grid 1
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer Data { uint data[4]; uint sum; };
void main() {
    uint l = gl_LocalInvocationIndex;
    if (l < 2) { data[l] = l; barrier(); }
    sum = data[l];
}
