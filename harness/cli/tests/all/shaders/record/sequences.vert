#version 450
void main() {
    gl_Position = vec4(vec2[](vec2(-1, -1), vec2(3, -1), vec2(-1, 3))[gl_VertexIndex % 3], 0.5, 1);
}
