#version 450
#include "parts/absent.glsl"
void main() {}
