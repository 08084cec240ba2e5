// --inputs auto
// Divergent: a count that ends within a workgroup lets some invocations miss the barrier.
#version 450
layout(local_size_x = 32) in;
layout(push_constant) uniform Size { uint count; };
layout(binding = 0) readonly buffer In { vec4 x[]; };
layout(binding = 1) writeonly buffer Out { vec4 y[]; };
shared vec4 tile[32];
void main() {
    uint i = gl_GlobalInvocationID.x, lane = gl_LocalInvocationID.x;
    if (i >= count) return; //~ fix: move this `return` after the last barrier, and guard the code before that by a condition
    tile[lane] = x[i];
    barrier(); //~ divergent-barrier with 11
    vec4 left = tile[max(lane, 1u) - 1u], right = tile[min(lane + 1u, 31u)];
    if (i < count) y[i] = 0.5 * (left + right);
}
//~ main: racy; mended: clean
