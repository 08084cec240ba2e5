#version 450
// Mode 1 writes a word for each vertex, and mode 2 reads a uniform buffer.
#if MODE == 1
layout(set = 0, binding = 4) buffer To { uint to[]; };
#elif MODE == 2
layout(set = 0, binding = 3) uniform From { uvec4 from; };
#endif
void main() {
    gl_Position = vec4(vec2[](vec2(-1, -1), vec2(3, -1), vec2(-1, 3))[gl_VertexIndex % 3], 0.5, 1);
#if MODE == 1
    to[gl_VertexIndex] = gl_VertexIndex;
#elif MODE == 2
    gl_Position.z = from.x / 1000.0;
#endif
}
