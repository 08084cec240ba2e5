#version 450
// $ race --grid 1,1,2
// exit code 2
// > a grid of vertices counts vertices and instances: its third number is 1
void main() { gl_Position = vec4(0.0); }
