// Whatever the stride and the offset are, elements of one quotient are stored by several invocations. An offset that was
// tried beyond the assumed size hides that, and refutes nothing.
// expect: racy
// args: --push 0=100
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(push_constant) uniform Arguments { uint count; uint stride; uint offset; } arguments;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= arguments.count) return;
    data[i / arguments.stride + arguments.offset] = i;
}
