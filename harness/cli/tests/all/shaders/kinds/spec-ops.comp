// --grid 1 --spec 3=7
#version 450
layout(constant_id = 3) const int N = 4;
layout(constant_id = 4) const float F = 0.5;
const int M = N * 2 + 1;
layout(local_size_x = 16) in;
layout(binding = 0) buffer O { float v[]; };
shared float s[M];
layout(binding = 1) uniform U { vec4 u[M]; };
void main() { if (gl_LocalInvocationIndex < M) s[gl_LocalInvocationIndex] = F; barrier(); v[gl_LocalInvocationIndex] = s[(gl_LocalInvocationIndex * N) % M] * u[N].x; }
//~ main: clean
