// --grid 1 --buffer 0.0=random:256
// Racy: rows and columns of the step are written again with what they have while others read them.
#version 450
layout(local_size_x = 4, local_size_y = 4) in;
layout(binding = 0) buffer D { uint d[]; };
shared uint m[4][4];
void main() {
    uint i = gl_LocalInvocationID.y, j = gl_LocalInvocationID.x;
    m[i][j] = d[i * 4 + j] & 255u;
    barrier();
    for (uint k = 0; k < 4; k++) {
        m[i][j] = min(m[i][j], m[i][k] + m[k][j]); //~ race, without a fix
        barrier();
    }
    d[i * 4 + j] = m[i][j];
}
//~ main: racy
