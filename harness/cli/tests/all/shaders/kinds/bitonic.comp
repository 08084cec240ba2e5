// --grid 2 --buffer 0.0=random:1024
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer Data { int keys[]; };
shared ivec2 tile[128];
void swap(uint a, uint b, bool up) {
    if ((tile[a].x > tile[b].x) == up) { ivec2 kept = tile[a]; tile[a] = tile[b]; tile[b] = kept; }
}
void main() {
    uint lane = gl_LocalInvocationIndex, base = gl_WorkGroupID.x * 128;
    tile[lane] = ivec2(keys[base + lane], lane);
    tile[lane + 64] = ivec2(keys[base + lane + 64], lane + 64);
    for (uint size = 2; size <= 128; size *= 2)
        for (uint step = size / 2; step > 0; step /= 2) {
            barrier();
            uint a = 2 * step * (lane / step) + lane % step;
            swap(a, a + step, (a & size) == 0);
        }
    barrier();
    keys[base + lane] = tile[lane].y;
    keys[base + lane + 64] = tile[lane + 64].y;
}
//~ main: clean
