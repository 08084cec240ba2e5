#version 450
#include "nowhere.glsl"
layout(local_size_x = 64) in;
void main() {}
