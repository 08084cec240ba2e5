// --grid 1
// Clean: the columns of a matrix lie 16 bytes apart, and the rows of the other one; what is behind the last of them is no part of it.
#version 460
layout(local_size_x = 3) in;
layout(std430, binding = 0) buffer Columns { mat3 columns; };
layout(std430, row_major, binding = 1) buffer Rows { mat2x3 rows; };

void main() {
    uint me = gl_LocalInvocationIndex;
    columns[me] = vec3(me);
    rows[0][me] = float(me);
    rows[1][me] = float(me + 1u);
}
//~ main: clean
