#version 450
// expect: divergent barrier
layout(local_size_x = 16) in;
layout(push_constant) uniform Size { uint count; };
layout(binding = 0) buffer Data { uint data[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= count) {
        data[i] = 0;
        return;
    }
    data[i] = i;
    barrier();
}
