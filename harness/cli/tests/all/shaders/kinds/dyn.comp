// --grid 2
#version 450
layout(local_size_x = 16) in;
struct T { mat3x4 m[2]; bvec3 b; uvec2 arr[3][2]; };
layout(row_major, std430, binding = 0) buffer D { mat4x3 rows[]; };
layout(binding = 1) buffer E { T t[]; } ;
shared T kept[16];
const float TABLE[5] = float[5](1, 2, 3, 4, 5);
void fill(inout float a[4], int n) { for (int i = 0; i < n; ++i) a[i] += TABLE[(n + i) % 5]; }
void main() {
  uint l = gl_LocalInvocationID.x, g = gl_GlobalInvocationID.x;
  float a[4] = float[4](0, 1, 2, 3);
  fill(a, int(l % 5u));
  vec4 v = vec4(a[0]); v[l % 4] = 3;
  kept[l].m[l & 1][l % 3][l % 4] = v[(l + 1) % 4];
  kept[l].b = lessThan(vec3(l), vec3(3)); kept[l].arr[l % 3][1].y = l;
  barrier();
  rows[g][l % 4][l % 3] = kept[(l + 1) % 16].m[(l + 1) & 1][(l + 1) % 3][(l + 1) % 4];
  rows[g][0] = vec3(1);
}
//~ main: clean
