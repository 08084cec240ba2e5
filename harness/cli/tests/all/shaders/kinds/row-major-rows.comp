//
#version 450
layout(local_size_x = 4) in;
layout(row_major, std430, binding = 0) buffer Matrices { mat4 m; };
layout(std430, binding = 0) buffer Rows { vec4 rows[4]; };
void main() {
    if (gl_LocalInvocationIndex == 0) m[1] = vec4(1.0); //~ race with 8, without a fix
    if (gl_LocalInvocationIndex == 1) rows[2] = vec4(1.0);
}
//~ main: racy
