#version 450
// A message between two invocations of a workgroup.
layout(local_size_x = 4) in;
layout(std430, binding = 0) buffer B0 { uint data[]; };
shared uint mail;

void main() {
    if (gl_LocalInvocationIndex == 0u) { mail = data[0] + 1u; }
    memoryBarrierShared();
    barrier();
    data[gl_LocalInvocationIndex] = mail;
}
