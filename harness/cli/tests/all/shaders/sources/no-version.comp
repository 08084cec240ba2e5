layout(local_size_x = 8) in;
layout(set = 0, binding = 0) buffer Marks { uint marks[]; };
void main() { marks[0] = gl_LocalInvocationIndex; }
