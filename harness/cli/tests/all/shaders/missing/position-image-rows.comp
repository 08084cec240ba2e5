#version 450
// expect: racy
// Two comparisons, of two axes, decide the second store.
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) buffer Data { uint data[]; };
void main() {
    uvec2 p = gl_GlobalInvocationID.xy;
    data[p.y * 256 + p.x + 1] = 1;
    if (p.x == 100 && p.y == 200) {
        data[1] = 4;
    }
}
