#version 450
// The quotient of the smallest number and -1 does not fit, and is undefined.
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer Numbers { int numbers[4]; };
void main()
{
    int zero = numbers[gl_LocalInvocationIndex];
    numbers[gl_LocalInvocationIndex] = (zero - 2147483647 - 1) / (zero - 1);
}
