// --grid 2
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { uint n; uint data[]; };
shared uint s[64];
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= 100)
        return;
    s[gl_LocalInvocationID.x] = data[i];
    barrier();
    if (gl_LocalInvocationID.x < 32)
        s[gl_LocalInvocationID.x] += s[gl_LocalInvocationID.x + 32];
    barrier();
    data[i] = s[0];
}
