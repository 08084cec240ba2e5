// --inputs auto
// Divergent: a count that ends within a workgroup lets some invocations miss the barrier.
#version 450
layout(local_size_x = 32) in;
layout(push_constant) uniform Size { uint count; };
layout(binding = 0) buffer Data { uint data[]; };
shared uint tile[32];
void main() {
    uint i = gl_GlobalInvocationID.x, lane = gl_LocalInvocationID.x;
    if (i >= count) return;
    tile[lane] = data[i];
    barrier();
    data[i] = tile[lane ^ 1u];
}
