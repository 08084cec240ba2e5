// --grid 1
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };
shared uint sums[64];
// The barrier belongs into the body, which is in the line of the loop.
void main() {
    uint lane = gl_LocalInvocationID.x;
    sums[lane] = data[lane];
    for (uint o = 32; o > 0; o >>= 1) { if (lane < o) sums[lane] += sums[lane + o]; }
    if (lane == 0) data[0] = sums[0];
}
