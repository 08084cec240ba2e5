// --grid 2
// Clean.
#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer D { dvec2 d[]; };
shared double s[4];
void main() {
    s[gl_LocalInvocationIndex] = d[gl_GlobalInvocationID.x].x * 2.0LF;
    barrier();
    d[gl_GlobalInvocationID.x].y = s[3 - gl_LocalInvocationIndex];
}
//~ main: clean
