// expect: divergent barrier
// args:
// The count that reaches the branch is larger than the grid; one of a position ends invocations before the barrier.
#version 450
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Bodies { uint bodies[]; };
layout(push_constant) uniform Parameters { uint count; };
shared uint tile[64];
void main() {
    uint index = gl_GlobalInvocationID.x, local = gl_LocalInvocationID.x;
    if (count < 64u || index >= count) return;
    uint force = 0u;
    if (count > 1000u) bodies[4095u - index] = 0u;
    for (uint first = 0u; first < count; first += 64u) {
        tile[local] = bodies[2u * (first + local)];
        barrier();
        force += tile[63u - local];
        barrier();
    }
    bodies[8192u + index] = force;
}
