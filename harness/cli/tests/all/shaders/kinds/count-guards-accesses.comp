// --inputs auto
// Clean: every invocation reaches the barrier, wherever the count ends.
#version 450
layout(local_size_x = 32) in;
layout(push_constant) uniform Size { uint count; };
layout(binding = 0) buffer Data { uint data[]; };
shared uint tile[32];
void main() {
    uint i = gl_GlobalInvocationID.x, lane = gl_LocalInvocationID.x;
    tile[lane] = i < count ? data[i] : 0;
    barrier();
    if (i < count) data[i] = tile[lane ^ 1u];
}
//~ main: clean
