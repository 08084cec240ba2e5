#version 450
// A reversal through workgroup memory.
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer B0 { uint data[]; };
shared uint tile[8];

void main() {
    uint i = gl_LocalInvocationIndex;
    tile[i] = data[i] * 2u;
    barrier();
    data[i] = tile[7u - i];
}
