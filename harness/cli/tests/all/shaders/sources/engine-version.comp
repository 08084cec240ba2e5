#version ENGINE_GLSL_VERSION
layout(local_size_x = SIZE) in;
layout(set = 0, binding = 0) buffer Marks { uint marks[]; };
void main() { marks[gl_GlobalInvocationID.x] = 1; }
