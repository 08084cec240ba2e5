#version 450
// expect: racy
// The mode decides the store by a return value alone.
layout(local_size_x = 64) in;
layout(push_constant) uniform P { uint mode; };
layout(binding = 0) buffer Data { uint data[]; };
uint stage_of(uint mode) {
    if (mode != 77) return 0;
    return 5;
}
void main() {
    data[gl_GlobalInvocationID.x + 1] = 1;
    if (stage_of(mode) == 5) {
        data[0] = gl_LocalInvocationIndex;
    }
}
