// --grid 2 --push 0=50
#version 450
layout(local_size_x = 32) in;
layout(binding = 0) buffer Data { uint data[]; };
layout(push_constant) uniform P { uint n; };
shared uint s[32];
void main() {
    uint lane = gl_LocalInvocationID.x;
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) { return; }
    // The tile.
    uint v = data[i]; // loaded once
    s[lane] = v;
    barrier();
    uint w = s[31 - lane];
    barrier();
    s[lane] = w + v;
    barrier();
    data[i] = s[(lane + 1) & 31];
}
