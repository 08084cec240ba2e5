#version 450
// expect: racy
// Two modes: one choice of inputs reaches one of them, and the second has the race.
layout(local_size_x = 16) in;
layout(push_constant) uniform Setup { uint mode; };
layout(binding = 0) buffer Data { uint data[]; };
shared uint tile[16];
void main() {
    uint lane = gl_LocalInvocationID.x;
    if (mode == 7) {
        tile[lane] = lane;
        data[gl_GlobalInvocationID.x] = tile[15 - lane];
    } else {
        data[gl_GlobalInvocationID.x] = mode;
    }
}
