// expect: divergent barrier
// args:
// A count that is not a multiple of the workgroup ends some invocations before the barrier of the loop.
#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const int TILE = 1024;
layout(std430, binding = 0) buffer Bodies { uvec4 bodies[]; };
layout(binding = 1) uniform Parameters { int count; };
shared uvec4 tile[TILE];
void main() {
    uint index = gl_GlobalInvocationID.x;
    if (index >= count) return;
    uvec4 force = uvec4(0u);
    for (int first = 0; first < count; first += TILE) {
        uint other = first + gl_LocalInvocationID.x;
        if (other < count) tile[gl_LocalInvocationID.x] = bodies[2u * other];
        else tile[gl_LocalInvocationID.x] = uvec4(0u);
        barrier();
        for (int j = 0; j < gl_WorkGroupSize.x; j++) force += tile[j] - bodies[2u * index];
        barrier();
    }
    bodies[2u * index + 1u] += force;
}
