// expect: racy
// The declared value omits the barrier; a larger one reaches it.
#version 450
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint TILE = 32u;
layout(std430, binding = 0) buffer B { uint b[]; };
shared uint tile[64];
void main() {
    uint i = gl_LocalInvocationIndex;
    tile[i] = i;
    if (TILE > 64u) barrier();
    b[gl_GlobalInvocationID.x] = tile[(i + TILE) % 64u];
}
