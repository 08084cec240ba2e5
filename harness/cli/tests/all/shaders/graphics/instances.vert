#version 450
// $ check --grid 1,2,1
// exit code 1
// > data race on `X.x[0]`: invocation vertex 0 of instance 0 writes it, invocation vertex 0 of instance 1
layout(set = 0, binding = 0) buffer X { uint x[]; };
void main() { x[gl_VertexIndex] = 1; gl_Position = vec4(gl_InstanceIndex); }
