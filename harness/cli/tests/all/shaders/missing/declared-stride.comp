// expect: racy
// The declared value races; larger ones would not.
#version 450
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint STRIDE = 1u;
layout(std430, binding = 1) buffer B { uint b[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    b[i * STRIDE] += b[i * STRIDE + 1u];
}
