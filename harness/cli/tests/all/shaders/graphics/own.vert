#version 450
// $ check --grid 3
// exit code 0
// > own:main: race-free under vulkan
layout(set = 0, binding = 0) buffer X { uint x[]; };
void main() { x[gl_VertexIndex] = 1; gl_Position = vec4(gl_VertexIndex); }
