// --seed 0
// A barrier at the start leaves the race of the inputs that skip the second one.
#version 450
layout(local_size_x = 32) in;
layout(push_constant) uniform P { uint n, m; } p;
layout(std430, binding = 0) buffer B { uint data[]; };
shared uint tile[32];
void main() { uint l = gl_LocalInvocationID.x; tile[l] = data[gl_GlobalInvocationID.x]; if (p.n > p.m) barrier(); data[gl_GlobalInvocationID.x] = tile[31u - l]; } //~ race; fix: put `barrier();` before this line
//~ main: racy; mended: clean
