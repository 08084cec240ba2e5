#version 450
// Vulkan leaves the remainder open where an operand is negative.
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer Numbers { int numbers[4]; };
void main() { numbers[gl_LocalInvocationIndex] = (numbers[gl_LocalInvocationIndex] - 7) % 3; }
